//! The E-model (ITU-T G.107, 06/2015): quality of a telephone call from its delay and packet loss.
//! All other parameters have their default values (G.107, Table 2).

/// With all parameters at their defaults, R is 93.2.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const OLR: f64 = SLR + RLR;
const STMR: f64 = 15.0;
const LSTR: f64 = 18.0;
const D_S: f64 = 3.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
const QDU: f64 = 1.0;
const N_C: f64 = -70.0;
const N_FOR: f64 = -64.0;
/// Room noise at both ends, in dB(A).
const P_S: f64 = 35.0;
const P_R: f64 = 35.0;
/// Delay sensitivity (sT) and minimum perceivable delay (mT).
const SENSITIVITY: f64 = 1.0;
const LEAST_PERCEIVED_MS: f64 = 100.0;

/// Impairment of a codec under packet loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Codec {
    /// Equipment impairment factor Ie.
    pub impairment: f64,
    /// Packet-loss robustness factor Bpl.
    pub robustness: f64,
}

/// Returns the rating R of a call with the mouth-to-ear delay `delay_s` if a fraction `loss` of the
/// packets is not played. Losses are random (BurstR = 1). The echo path is symmetric: T = Ta, Tr =
/// 2 Ta.
pub(crate) fn rating(codec: Codec, delay_s: f64, loss: f64) -> f64 {
    let delay_ms = delay_s * 1e3;
    let noise = noise_dbm0p();
    // Eq. 7-2.
    let signal_to_noise = 15.0 - 1.5 * (SLR + noise);
    signal_to_noise
        - simultaneous(signal_to_noise, noise, delay_ms)
        - delayed(signal_to_noise, noise, delay_ms)
        - effective(codec, loss)
}

/// Returns the mean opinion score for a rating R (G.107, Eq. B-4).
pub(crate) fn opinion(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6
    }
}

/// No: sum of all noise powers at the 0 dBr point (Eqs. 7-3 to 7-7).
fn noise_dbm0p() -> f64 {
    let of_sender = P_S - SLR - D_S - 100.0 + 0.004 * square(P_S - OLR - D_S - 14.0);
    let heard = P_R + 10.0 * libm::log10(1.0 + decibels((10.0 - LSTR) / 10.0));
    let of_receiver = RLR - 121.0 + heard + 0.008 * square(heard - 35.0);
    let floor = N_FOR + RLR;
    let powers = [N_C, of_sender, of_receiver, floor].map(|level| decibels(level / 10.0));
    10.0 * libm::log10(powers.iter().sum())
}

/// Is: simultaneous impairment factor (Eqs. 7-8 to 7-17).
fn simultaneous(signal_to_noise: f64, noise: f64, delay_ms: f64) -> f64 {
    let loudness = OLR + 0.2 * (64.0 + noise - RLR);
    let too_loud = 20.0 * (root_of_sum(loudness / 8.0, 8.0) - loudness / 8.0);
    let echo = libm::exp(-delay_ms / 4.0) * decibels(-TELR / 10.0);
    let own_voice = -10.0 * libm::log10(decibels(-STMR / 10.0) + echo);
    let sidetone = 12.0 * root_of_sum((own_voice - 13.0) / 6.0, 8.0)
        - 28.0 * root_of_sum((own_voice + 1.0) / 19.4, 35.0)
        - 13.0 * root_of_sum((own_voice - 3.0) / 33.0, 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * libm::log10(QDU);
    let g = 1.07 + 0.258 * q + 0.0602 * square(q);
    let y = (signal_to_noise - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantising = 15.0 * libm::log10(1.0 + decibels(y) + decibels(z));
    too_loud + sidetone + quantising
}

/// Id: delay impairment factor: talker echo, listener echo and absolute delay (Eqs. 7-18 to 7-28).
fn delayed(signal_to_noise: f64, noise: f64, delay_ms: f64) -> f64 {
    let terv = TELR - 40.0 * libm::log10((1.0 + delay_ms / 10.0) / (1.0 + delay_ms / 150.0))
        + 6.0 * libm::exp(-0.3 * square(delay_ms));
    let (clean, echoing) = (-1.5 * (noise - RLR), 80.0 + 2.5 * (terv - 14.0));
    let half = (clean - echoing) / 2.0;
    let of_talker = (half + (square(half) + 100.0).sqrt() - 1.0) * (1.0 - libm::exp(-delay_ms));
    let round_trip_ms = 2.0 * delay_ms;
    let half =
        (signal_to_noise - 10.5 * (WEPL + 7.0) * libm::pow(round_trip_ms + 1.0, -0.25)) / 2.0;
    let of_listener = half + (square(half) + 169.0).sqrt();
    of_talker + of_listener + absolute(delay_ms)
}

/// Idd: impairment by a long absolute delay without echo (Eqs. 7-27, 7-28).
fn absolute(delay_ms: f64) -> f64 {
    if delay_ms <= LEAST_PERCEIVED_MS {
        return 0.0;
    }
    let x = libm::log2(delay_ms / LEAST_PERCEIVED_MS);
    let power = 6.0 * SENSITIVITY;
    25.0 * (root_of_sum(x, power) - 3.0 * root_of_sum(x / 3.0, power) + 2.0)
}

/// Ie-eff: effective equipment impairment under packet loss (Eq. 7-29 with BurstR = 1).
fn effective(codec: Codec, loss: f64) -> f64 {
    let percent = 100.0 * loss;
    codec.impairment + (95.0 - codec.impairment) * percent / (percent + codec.robustness)
}

/// (1 + xᵖ)^(1/p).
fn root_of_sum(x: f64, p: f64) -> f64 {
    libm::pow(1.0 + libm::pow(x, p), 1.0 / p)
}

fn decibels(exponent: f64) -> f64 {
    libm::pow(10.0, exponent)
}

fn square(x: f64) -> f64 {
    x * x
}

#[cfg(test)]
mod tests {
    use super::*;

    const G711: Codec = Codec { impairment: 0.0, robustness: 25.1 };
    const G729A: Codec = Codec { impairment: 11.0, robustness: 19.0 };
    const G723_1: Codec = Codec { impairment: 15.0, robustness: 16.1 };

    #[test]
    fn the_defaults_of_g107_give_93_2_and_4_41() {
        let r = rating(G711, 0.0, 0.0);
        assert_eq!(format!("{r:.1}"), "93.2");
        assert_eq!(format!("{:.2}", opinion(r)), "4.41");
    }

    /// G.107, Table B.1: where the categories of satisfaction begin.
    #[test]
    fn ratings_and_opinions_meet_as_annex_b_says() {
        let table = [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)];
        for (r, mos) in table {
            // It rounds 4.024 up.
            assert!((opinion(r) - mos).abs() < 0.007, "R = {r}: {}", opinion(r));
        }
        assert_eq!((opinion(-3.0), opinion(101.0)), (1.0, 4.5));
    }

    /// G.113, Appendix I has Ie at 2 % of loss: 7 of G.711 with PLC, 19 of G.729A, 24 of G.723.1.
    #[test]
    fn codecs_lose_by_losses_what_g113_says() {
        for (codec, ie) in [(G711, 7.0), (G729A, 19.0), (G723_1, 24.0)] {
            assert!((effective(codec, 0.02) - ie).abs() < 0.25, "{ie}: {}", effective(codec, 0.02));
        }
    }

    /// Cole and Rosenbluth (ACM CCR 31(2), 2001): Id ≈ 0.024 d + 0.11 (d − 177.3) H(d − 177.3).
    #[test]
    fn delays_cost_what_the_known_approximation_of_them_says() {
        let whole = rating(G711, 0.0, 0.0);
        for delay_ms in (0..=300).step_by(10) {
            let d = f64::from(delay_ms);
            let approximate = 0.024 * d + 0.11 * (d - 177.3).max(0.0);
            let id = whole - rating(G711, d / 1e3, 0.0);
            assert!((id - approximate).abs() < 1.0, "{d} ms: {id} beside {approximate}");
        }
        // G.107 has no Idd up to 100 ms.
        assert_eq!(absolute(100.0), 0.0);
        // X = 1: 25 (2^(1/6) − 3 (1 + 3⁻⁶)^(1/6) + 2).
        let doubled = 25.0
            * (libm::pow(2.0, 1.0 / 6.0) - 3.0 * libm::pow(1.0 + 1.0 / 729.0, 1.0 / 6.0) + 2.0);
        assert!((absolute(200.0) - doubled).abs() < 1e-9);
    }
}
