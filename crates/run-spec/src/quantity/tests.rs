use super::*;

fn drawn(law: DistributionKind, min: Option<f64>, max: Option<f64>) -> Quantity {
    Quantity::Drawn(Distribution { law, min, max })
}

fn web_search() -> DistributionKind {
    // Greenberg et al. and Alizadeh et al. have some like it; these points are made up.
    let points = [(0.0, 0.0), (10e3, 0.15), (80e3, 0.53), (1e6, 0.7), (30e6, 1.0)];
    let points = points.map(|(value, probability)| CdfPoint { value, probability });
    DistributionKind::Empirical { points: points.to_vec() }
}

/// One of each law, with a finite variance so that sample means come close.
fn laws() -> Vec<DistributionKind> {
    vec![
        DistributionKind::Exponential { mean: 20e3 },
        DistributionKind::Lognormal { median: 10e3, sigma: 0.8 },
        DistributionKind::Pareto { scale: 4e3, shape: 3.5 },
        DistributionKind::Weibull { scale: 30e3, shape: 0.7 },
        DistributionKind::Weibull { scale: 30e3, shape: 2.5 },
        web_search(),
    ]
}

/// The mean by its definition, ∫ Q(p) dp, in a million steps.
fn integral(distribution: &Distribution) -> f64 {
    let n = 1_000_000;
    let at = |i: u32| (f64::from(i) + 0.5) / f64::from(n);
    (0..n).map(|i| distribution.quantile(at(i))).sum::<f64>() / f64::from(n)
}

#[test]
fn means_are_those_of_the_formulas() {
    let mean = |law| Distribution::of(law).mean().unwrap();
    assert_eq!(mean(DistributionKind::Exponential { mean: 7.0 }), 7.0);
    // e^(0.8² ⁄ 2) = 1.377128; Γ(1 + 1 ⁄ 0.5) = 2; 3.5 ⁄ 2.5 = 1.4.
    assert!(
        (mean(DistributionKind::Lognormal { median: 1.0, sigma: 0.8 }) - 1.377_127_764).abs()
            < 1e-9
    );
    assert!((mean(DistributionKind::Weibull { scale: 3.0, shape: 0.5 }) - 6.0).abs() < 1e-12);
    assert!((mean(DistributionKind::Pareto { scale: 1.0, shape: 3.5 }) - 1.4).abs() < 1e-12);
    // 0.15 × 5 kB + 0.38 × 45 kB + 0.17 × 540 kB + 0.3 × 15.5 MB.
    assert!((mean(web_search()) - (750.0 + 17_100.0 + 91_800.0 + 4_650_000.0)).abs() < 1e-6);
}

#[test]
fn bounds_leave_what_lies_between_them_in_proportion() {
    for law in laws() {
        let (min, max) = (law.quantile(0.2), law.quantile(0.9));
        let cut = Distribution { law: law.clone(), min: Some(min), max: Some(max) };
        assert!((cut.quantile(0.5) / law.quantile(0.55) - 1.0).abs() < 1e-9, "{law:?}");
        let (mean, expected) = (cut.mean().unwrap(), integral(&cut));
        assert!((mean / expected - 1.0).abs() < 1e-5, "{law:?}: {mean} beside {expected}");
        let above = Distribution { law: law.clone(), min: Some(min), max: None };
        let (mean, expected) = (above.mean().unwrap(), integral(&above));
        assert!((mean / expected - 1.0).abs() < 1e-3, "{law:?}: {mean} beside {expected}");
    }
}

#[test]
fn quantiles_undo_the_distribution_function() {
    for law in laws() {
        for i in 1..100 {
            let p = f64::from(i) / 100.0;
            let back = law.cdf(law.quantile(p));
            assert!((back - p).abs() < 1e-12, "{law:?}: {back} beside {p}");
        }
    }
}

#[test]
fn the_normal_quantile_has_all_its_digits() {
    // Tables of Φ⁻¹ to ten digits.
    for (p, z) in
        [(0.975, 1.959_963_985), (0.5, 0.0), (0.01, -2.326_347_874), (1e-9, -5.997_807_015)]
    {
        assert!((normal_quantile(p) - z).abs() < 1e-9, "Φ⁻¹({p}) = {}", normal_quantile(p));
    }
}

#[test]
fn draws_have_the_mean_and_the_quantiles_of_their_law() {
    let n = 200_000;
    for law in laws() {
        let quantity = drawn(law.clone(), None, None);
        let (sampler, mut random) =
            (QuantitySampler::new(quantity.clone()), RandomStream::new(3, "draws"));
        let mut values: Vec<_> = (0..n).map(|_| sampler.real(&mut random)).collect();
        values.sort_by(f64::total_cmp);
        let (mean, expected) =
            (values.iter().sum::<f64>() / f64::from(n), quantity.mean().unwrap());
        assert!((mean / expected - 1.0).abs() < 0.02, "{law:?}: {mean} beside {expected}");
        for p in [0.05, 0.5, 0.95] {
            let (found, expected) = (values[(p * f64::from(n)) as usize], quantity.quantile(p));
            assert!((found / expected - 1.0).abs() < 0.03, "{law:?}: {found} beside {expected}");
        }
    }
}

#[test]
fn the_same_seed_draws_the_same_and_another_does_not() {
    let sizes = |seed| {
        let mut sizes = Sizes::new(&drawn(web_search(), None, None), seed, "web");
        [sizes.draw(), sizes.draw(), sizes.draw()]
    };
    assert_eq!(sizes(1), sizes(1));
    assert_ne!(sizes(1), sizes(2));
}

#[test]
fn a_constant_is_itself_and_draws_nothing() {
    let (sampler, mut random) =
        (QuantitySampler::new(Quantity::Constant(1_500)), RandomStream::new(1, "constant"));
    assert_eq!(sampler.count(&mut random), 1_500);
    assert_eq!(sampler.span(&mut random), Span::from_ns(1_500));
    assert_eq!(Quantity::Constant(1_500).mean(), Some(1_500.0));
    assert_eq!(random.bits(), RandomStream::new(1, "constant").bits());
}

#[test]
fn an_exponential_draw_is_the_streams_own() {
    let sampler =
        QuantitySampler::new(drawn(DistributionKind::Exponential { mean: 5e8 }, None, None));
    let (mut random, mut stream) = (RandomStream::new(9, "think"), RandomStream::new(9, "think"));
    assert_eq!(sampler.real(&mut random), stream.exponential(5e8));
}

#[test]
fn a_tail_without_a_mean_has_none_unless_it_is_cut() {
    let law = DistributionKind::Pareto { scale: 1e3, shape: 0.9 };
    assert_eq!(drawn(law.clone(), None, None).mean(), None);
    let cut = Distribution { law, min: None, max: Some(1e9) };
    let (mean, expected) = (cut.mean().unwrap(), integral(&cut));
    assert!((mean / expected - 1.0).abs() < 1e-3, "{mean} beside {expected}");
}
