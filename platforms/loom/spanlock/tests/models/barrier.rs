//! When the light half of the asymmetric fence may be nothing. No model can say what a kernel's fence does to other
//! threads: these accept any outcome where the heavy side relies on the kernel. No kernel here refuses, at first or
//! later.

use prim::atomic::{AtomicU32, Ordering};
use prim::barrier::light::{Kernel, Light};
use prim::model;
use prim::thread::spawn;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A kernel that grants each request. It is no part of what loom explores.
#[derive(Default)]
struct Granting {
    fenced: Arc<AtomicBool>,
}

impl Kernel for Granting {
    fn register(&self) -> bool {
        true
    }

    fn expedite(&self) -> bool {
        self.fenced.store(true, Ordering::Relaxed);
        true
    }

    fn settle(&self) {
        unreachable!("it does not refuse")
    }
}

/// A kernel that allows no request.
struct Forbidding;

impl Kernel for Forbidding {
    fn register(&self) -> bool {
        unreachable!("it is not asked")
    }

    fn expedite(&self) -> bool {
        unreachable!("it is not asked")
    }

    fn settle(&self) {
        unreachable!("it is not asked")
    }
}

#[test]
fn without_the_kernel_one_of_two_sees_the_other() {
    model(None, || {
        let fence = Light::new(Forbidding);
        fence.forgo();
        let shared = Arc::new((fence, [AtomicU32::new(0), AtomicU32::new(0)]));
        let other = spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (fence, words) = &*shared;
                fence.prepare();
                words[0].store(1, Ordering::Relaxed);
                fence.light();
                words[1].load(Ordering::Relaxed)
            }
        });
        let (fence, words) = &*shared;
        words[1].store(1, Ordering::Relaxed);
        fence.heavy();
        let seen = words[0].load(Ordering::Relaxed);
        let seen_by_other = other.join().unwrap();
        assert!(seen == 1 || seen_by_other == 1, "neither sees the other");
    });
}

#[test]
fn the_kernel_is_asked_while_two_look_for_each_other() {
    model(None, || {
        let kernel = Granting::default();
        let fenced_by_kernel = Arc::clone(&kernel.fenced);
        let fence = Arc::new(Light::new(kernel));
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let asker = spawn({
            let fence = Arc::clone(&fence);
            move || fence.prepare()
        });
        let other = spawn({
            let (fence, words) = (Arc::clone(&fence), Arc::clone(&words));
            move || {
                words[0].store(1, Ordering::Relaxed);
                fence.light();
                words[1].load(Ordering::Relaxed)
            }
        });
        words[1].store(1, Ordering::Relaxed);
        fence.heavy();
        let seen = words[0].load(Ordering::Relaxed);
        asker.join().unwrap();
        let seen_by_other = other.join().unwrap();
        assert!(
            seen == 1 || seen_by_other == 1 || fenced_by_kernel.load(Ordering::Relaxed),
            "neither sees the other"
        );
    });
}
