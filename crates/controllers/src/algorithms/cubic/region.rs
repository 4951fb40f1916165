//! Regions of CUBIC's growth.

/// Region of the curve that determines the growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Region {
    #[default]
    Concave,
    Convex,
    RenoFriendly,
}

impl Region {
    /// Name of the region as a mode.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Concave => "concave",
            Self::Convex => "convex",
            Self::RenoFriendly => "reno_friendly",
        }
    }
}
