//! PCC Vivace on a path of its own: 50 Mbit/s, 40 ms, a buffer of one bandwidth-delay product.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_congestion::StateObserver;
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

fn path(mbps: u64, rtt_ms: u64) -> Path {
    let mut path = Path::new(Rate::from_mbps(mbps), Span::from_ms(rtt_ms), 0);
    path.buffer = path.bdp() as usize;
    path
}

fn with_form(path: Path, form: &str) -> Transfer {
    Transfer::new(path, build("vivace", &[("form", ParameterValue::Text(form.to_owned()))], None))
}

/// Share of the bottleneck used and mean queueing delay in seconds between two times.
fn measure(transfer: &mut Transfer, from_s: f64, to_s: f64) -> (f64, f64) {
    transfer.run_until(from_s);
    let before = transfer.delivered();
    let steps = 1000;
    let mut queued = 0;
    for i in 1..=steps {
        transfer.run_until(from_s + (to_s - from_s) * f64::from(i) / f64::from(steps));
        queued += transfer.queue();
    }
    let packet_s = 1514.0 * 8.0 / transfer.path.rate.as_bps() as f64;
    let share = (transfer.delivered() - before) as f64 * packet_s / (to_s - from_s);
    (share, queued as f64 / f64::from(steps) * packet_s)
}

struct Named(&'static str, f64);

impl StateObserver for Named {
    fn record_value(&mut self, name: &'static str, value: f64) {
        if name == self.0 {
            self.1 = value;
        }
    }
}

fn observed(transfer: &Transfer, name: &'static str) -> f64 {
    let mut named = Named(name, f64::NAN);
    transfer.controller.observe(&mut named);
    assert!(!named.1.is_nan(), "nothing is called {name}");
    named.1
}

#[test]
fn every_form_fills_the_path_at_little_delay() {
    for form in ["satellite", "paper", "linear", "scaled"] {
        let mut transfer = with_form(path(50, 40), form);
        let (share, delay_s) = measure(&mut transfer, 5.0, 35.0);
        assert!(share > 0.92, "{form}: utilisation {share}");
        assert!(delay_s < 0.010, "{form}: {delay_s} s of queue");
        assert_eq!(transfer.timeouts, 0, "{form}");
    }
}

/// The Linux port measures the change of the smoothed RTT, and its steps are coarser.
#[test]
fn the_linux_port_fills_the_path_too() {
    let mut transfer = with_form(path(50, 40), "linux");
    let (share, delay_s) = measure(&mut transfer, 5.0, 35.0);
    assert!(share > 0.9, "utilisation {share}");
    assert!(delay_s < 0.03, "{delay_s} s of queue");
}

#[test]
fn it_fills_slow_fast_and_long_paths() {
    for (mbps, rtt_ms) in [(5, 20), (200, 5), (144, 600)] {
        let mut transfer = Transfer::new(path(mbps, rtt_ms), default_controller("vivace"));
        let (share, delay_s) = measure(&mut transfer, 30.0, 60.0);
        assert!(share > 0.9, "{mbps} Mbit/s, {rtt_ms} ms: utilisation {share}");
        let floor_s = 30.0 * 1514.0 * 8.0 / (mbps as f64 * 1e6);
        let limit_s = floor_s.max(0.4e-3 * rtt_ms as f64);
        assert!(delay_s < limit_s, "{mbps} Mbit/s, {rtt_ms} ms: {delay_s} s of queue");
    }
}

#[test]
fn starting_overshoots_by_less_than_two_bdps() {
    let mut transfer = Transfer::new(path(50, 40), default_controller("vivace"));
    let mut rates = vec![observed(&transfer, "rate_bps")];
    while transfer.controller.mode() == "starting" {
        transfer.step();
        let rate = observed(&transfer, "rate_bps");
        if rate > rates[rates.len() - 1] {
            rates.push(rate);
        }
    }
    assert!(rates.windows(2).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-9), "{rates:?}");
    assert!(transfer.now.as_secs_f64() < 0.5);
    let left_at = observed(&transfer, "rate_bps");
    assert!((20e6..50e6).contains(&left_at), "left at {left_at}");
    transfer.run_until(1.0);
    assert!((transfer.total_lost as f64) < 2.0 * transfer.path.bdp(), "{}", transfer.total_lost);
}

/// The linear form with a loss coefficient of 10 bears a tenth of random loss and no more.
#[test]
fn the_loss_that_is_borne_is_that_of_the_utility() {
    let mut below = with_form(Path { loss: 0.07, ..path(50, 40) }, "satellite");
    let (share, _) = measure(&mut below, 10.0, 40.0);
    assert!(share > 0.8, "7 % lost: utilisation {share}");
    let mut above = with_form(Path { loss: 0.14, ..path(50, 40) }, "satellite");
    let (share, _) = measure(&mut above, 20.0, 40.0);
    assert!(share < 0.3, "14 % lost: utilisation {share}");
}

/// algorithms.md: at 50 Mbit/s the paper's utility bears 0.9 · 50^−0.1/11.35 = 5.4 % of loss, the
/// linear one 1/11.
#[test]
fn the_loss_utility_bears_loss_up_to_its_limit() {
    for (form, loss, borne) in [
        ("paper", 0.02, true),
        ("paper", 0.12, false),
        ("linear", 0.05, true),
        ("linear", 0.14, false),
    ] {
        let given = [
            ("form", ParameterValue::Text(form.into())),
            ("utility", ParameterValue::Text("loss".into())),
        ];
        let path = Path { loss, ..path(50, 40) };
        let mut transfer = Transfer::new(path, build("vivace", &given, None));
        let (share, _) = measure(&mut transfer, 20.0, 50.0);
        assert_eq!(share > 0.8, borne, "{form}, {loss} lost: utilisation {share}");
    }
}

#[test]
fn it_follows_the_capacity() {
    let mut transfer = Transfer::new(path(50, 40), default_controller("vivace"));
    transfer.run_until(10.0);
    transfer.path.rate = Rate::from_mbps(20);
    let (share, delay_s) = measure(&mut transfer, 16.0, 30.0);
    assert!(share > 0.9 && delay_s < 0.03, "20 Mbit/s: {share}, {delay_s} s");
    transfer.path.rate = Rate::from_mbps(50);
    let (share, _) = measure(&mut transfer, 36.0, 46.0);
    assert!(share > 0.9, "50 Mbit/s: {share}");
}

/// A timeout halves the rate once, however long the outage; it is back after two seconds.
#[test]
fn an_outage_costs_half_of_the_rate() {
    let mut transfer = Transfer::new(path(50, 40), default_controller("vivace"));
    transfer.run_until(10.0);
    let before = observed(&transfer, "rate_bps");
    transfer.path.loss = 1.0;
    transfer.run_until(12.0);
    let ratio = observed(&transfer, "rate_bps") / before;
    assert!((0.4..0.6).contains(&ratio), "{ratio} of the rate");
    transfer.path.loss = 0.0;
    let (share, _) = measure(&mut transfer, 14.0, 20.0);
    assert!(share > 0.85, "utilisation {share}");
}

/// What the application does not send cannot be counted as throughput.
#[test]
fn a_slow_application_does_not_drive_the_rate_up() {
    let mut transfer = Transfer::new(path(50, 40), default_controller("vivace"));
    let packets = 2000;
    // 1 Mbit/s: a packet every 12 ms.
    for sent in 1..packets {
        transfer.offer(sent);
        transfer.run_until(0.1 + sent as f64 * 0.012);
    }
    let rate = observed(&transfer, "rate_bps");
    assert!((0.5e6..8e6).contains(&rate), "{rate} bit/s");
    assert!(transfer.delivered() + 10 > packets);
}
