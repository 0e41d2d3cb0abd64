fn main() {
    let mut digits: Vec<String> = (0..9).map(|number| number.to_string()).collect();
    digits.sort();
    println!("{digits:?}");
}
