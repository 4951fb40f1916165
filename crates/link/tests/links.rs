//! What every link must keep, whatever it is made of and whatever is done to it.

use crate::support::{Operation, Serial, build, check_link, operations};
use jostle_link::queue::QueueLimit;
use jostle_link::registry::{CAPACITIES, DELAYS, LOSSES, queues};
use jostle_link::{Delay, DropReason, Link, Loss};
use jostle_units::{Span, Time};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn links_keep_their_packets_their_order_and_their_capacity(
        queue in 0..queues::<Serial>().len(),
        capacity in 0..build::CAPACITIES,
        delay in 0..build::DELAYS,
        losses in 0u8..8,
        seed: u64,
        list in operations(),
    ) {
        let two_queues = queues::<Serial>()[queue].entry.name == "dualpi2";
        let (queue, _) = build::queue(queue, QueueLimit::Packets(40), seed & 1 == 0, seed);
        let (delay, least) = build::delay(delay, seed);
        let may_reorder = delay.may_reorder();
        let link = Link::new(queue, build::capacity(capacity, seed), delay, build::losses(losses, seed));
        let offered = build::capacity(capacity, seed);
        let account = check_link(link, offered, least, may_reorder, two_queues, &list).map_err(TestCaseError::fail)?;
        let arrived = list.iter().filter(|o| matches!(o, Operation::Arrive { .. })).count() as u64;
        // Only a link that stops for good keeps anything.
        let gone = account.taken + account.dropped;
        prop_assert!(gone == arrived || (capacity == 3 && gone < arrived));
    }
}

#[test]
fn every_kind_of_the_registry_is_tested() {
    // Steps that end in a stop, no delay at all, and jitter with reordering come on top.
    assert_eq!(CAPACITIES.len() + 1, build::CAPACITIES);
    assert_eq!(DELAYS.len() + 2, build::DELAYS);
    // Outages are losses, too.
    assert_eq!(LOSSES.len() + 1, build::losses(7, 1).len());
}

/// A delay that promises not to reorder would be held to it by the link; one that arrives before
/// it was sent, or a loss that is not told of at the right time, must be noticed.
#[test]
fn the_checker_rejects_links_that_are_broken() {
    struct Hasty;
    impl Delay for Hasty {
        fn delay(&mut self, now: Time) -> Span {
            Span::from_ms(if now.as_ns() > 1_000_000 { 4 } else { 5 })
        }
    }
    struct Mistaken;
    impl Loss for Mistaken {
        fn verdict(&mut self, _: Time) -> Option<DropReason> {
            Some(DropReason::Overflow)
        }
    }
    let ecn = jostle_link::Ecn::NotCapable;
    let mut list = vec![Operation::Arrive { flow: 0, size_bytes: 1514, ecn }; 20];
    list.extend([Operation::Take; 3]);
    let link = |delay: Box<dyn Delay>, losses| {
        let (queue, _) = build::queue(0, QueueLimit::Packets(40), false, 1);
        Link::new(queue, build::capacity(0, 1), delay, losses)
    };
    let check = |link, least| check_link(link, build::capacity(0, 1), least, false, false, &list);
    let hasty = check(link(Box::new(Hasty), vec![]), Span::from_ms(5));
    assert!(hasty.is_err_and(|found| found.contains("came at")));
    let (delay, least) = build::delay(0, 1);
    let mistaken = check(link(delay, vec![Box::new(Mistaken)]), least);
    assert!(mistaken.is_err_and(|found| found.contains("Overflow at")));
    let (delay, least) = build::delay(4, 1);
    let reordering = check(link(delay, vec![]), least);
    assert!(reordering.is_err_and(|found| found.contains("came after")));
}
