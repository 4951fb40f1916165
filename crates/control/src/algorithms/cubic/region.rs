//! Where on its curve CUBIC is.

/// Which part of the curve decides the growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Region {
    #[default]
    Concave,
    Convex,
    RenoFriendly,
}

impl Region {
    /// Its name as a mode.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Concave => "concave",
            Self::Convex => "convex",
            Self::RenoFriendly => "reno_friendly",
        }
    }
}
