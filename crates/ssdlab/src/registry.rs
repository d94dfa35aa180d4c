//! Registries: a const slice of [`Entry`] kept beside the things it lists.
//!
//! Being in one enrols a thing in rigs, CLI, Python, `ssdlab list`, the docs, the benches and the
//! law tests.

use crate::error::{Error, Result, nearest};

/// One thing that can be named: a policy, a device, a format.
#[derive(Clone, Copy)]
pub struct Entry<B> {
    /// The name users write.
    pub name: &'static str,
    /// One line: what it is.
    pub summary: &'static str,
    /// Where it comes from: paper, standard, manual; empty where it needs none.
    pub reference: &'static str,
    /// Makes one.
    pub build: B,
}

impl<B: Copy> Entry<B> {
    /// One that needs no reference.
    pub const fn known(name: &'static str, summary: &'static str, build: B) -> Self {
        Entry { name, summary, reference: "", build }
    }
}

/// The entry of a TOML file in a folder beside the list: its name is the file's.
macro_rules! toml_entry {
    ($folder:literal, $name:literal, $summary:literal) => {
        crate::registry::Entry::known(
            $name,
            $summary,
            include_str!(concat!($folder, "/", $name, ".toml")),
        )
    };
}
pub(crate) use toml_entry;

/// A set of entries of one kind.
pub struct Registry<B: 'static> {
    /// What the entries are, in the singular: "victim policy".
    pub what: &'static str,
    /// The entries, in the order they are listed.
    pub entries: &'static [Entry<B>],
}

impl<B> Registry<B> {
    /// The entry called `name`, or an error that lists the known names.
    pub fn find(&self, name: &str) -> Result<&'static Entry<B>> {
        self.entries.iter().find(|e| e.name == name).ok_or_else(|| Error::Unknown {
            key: String::new(),
            what: self.what,
            name: name.to_string(),
            suggestion: nearest(name, self.names()).map(str::to_string),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }
    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<B> {
        self.entries.iter().map(|e| e.name)
    }
}
