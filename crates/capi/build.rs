//! Gives the shared library its SONAME, and has the loader keep it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // Versions that begin with the same two numbers have one ABI.
        let version = env!("CARGO_PKG_VERSION");
        let (abi, _) = version.rsplit_once('.').expect("three numbers");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libspanlock.so.{abi}");
        // Threads may still run its code, or have destructors in it, after a `dlclose`.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
