//! The lines of a job file: sections, options, comments, includes, the environment.

use super::parse::ParseSource;
use crate::error::{Error, Result};
use std::sync::Arc;

/// Includes may nest this deep (as in fio).
const INCLUDE_DEPTH_MAX: u32 = 16;

/// All that is said of a line of an included file, beside where it stands.
const UNQUOTED: &str = "this line cannot be used in the job; lines of included files are not shown";

/// Where a line of a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the file in messages.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// It is in a file that the job includes. That may be any file that can be read, named by a job that
    /// somebody else wrote: messages say where a line stands in it, never what it says.
    pub included: bool,
}

impl Place {
    /// An error at `option` in this place; of an included file only the place is told.
    pub fn error(&self, option: &str, problem: impl Into<String>) -> Error {
        let (option, problem) = match self.included {
            true => (String::new(), UNQUOTED.to_string()),
            false => (option.to_string(), problem.into()),
        };
        Error::Job { file: self.file.to_string(), line: self.line, option, problem }
    }
}

/// One `option=value` line.
#[derive(Clone, Debug)]
pub struct Line {
    pub place: Place,
    pub name: String,
    /// `None`: a bare option.
    pub value: Option<String>,
    /// It came from `[global]`.
    pub global: bool,
}

impl Line {
    /// An error at this line.
    pub fn error(&self, problem: impl Into<String>) -> Error {
        self.place.error(&self.name, problem)
    }
}

/// One job section with the global options that stood before it.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub place: Place,
    pub lines: Vec<Line>,
}

/// A job file taken apart.
#[derive(Default)]
pub struct Sections {
    pub jobs: Vec<Section>,
    pub globals: Vec<Line>,
    /// Inside `[global]`.
    in_global: bool,
}

/// Takes `text` apart.
///
/// # Errors
/// [`Error::Job`] for a line that is neither section, option nor comment, an unreadable include
/// or an unset environment variable.
pub fn read(text: &str, source: &ParseSource) -> Result<Sections> {
    let mut sections = Sections::default();
    let mut reader = Reader { source, sections: &mut sections };
    reader.lines(text, &Arc::from(source.file.as_str()), 0)?;
    Ok(sections)
}

struct Reader<'a, 'b> {
    source: &'a ParseSource<'b>,
    sections: &'a mut Sections,
}

impl Reader<'_, '_> {
    fn lines(&mut self, text: &str, file: &Arc<str>, depth: u32) -> Result<()> {
        for (index, raw) in text.lines().enumerate() {
            let line = raw.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let at = Place { file: file.clone(), line: number, included: depth > 0 };
            if let Some(rest) = line.strip_prefix('[') {
                self.section(rest, at)?;
            } else if let Some(path) = line.strip_prefix("include ") {
                self.include(path.trim(), &at, depth)?;
            } else {
                self.option(line, at)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, rest: &str, place: Place) -> Result<()> {
        let name = match rest.split_once(']') {
            Some((name, "")) if !name.trim().is_empty() => name.trim(),
            _ => {
                return Err(place.error(
                    &format!("[{rest}"),
                    "a section is a name in square brackets on a line of its own, such as [fill]",
                ));
            }
        };
        self.sections.in_global = name == "global";
        if !self.sections.in_global {
            self.sections.jobs.push(Section {
                name: name.to_string(),
                place,
                lines: self.sections.globals.clone(),
            });
        }
        Ok(())
    }

    fn include(&mut self, path: &str, at: &Place, depth: u32) -> Result<()> {
        if depth >= INCLUDE_DEPTH_MAX {
            let problem = format!("files include each other more than {depth} deep");
            return Err(at.error("include", problem));
        }
        let path = self.expand(path, at, "include")?;
        let text = (self.source.include)(&path)
            .map_err(|e| at.error("include", format!("cannot read \"{path}\": {e}")))?;
        self.lines(&text, &Arc::from(path.as_str()), depth + 1)
    }

    fn option(&mut self, line: &str, place: Place) -> Result<()> {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        let value = value.map(|v| self.expand(v, &place, name)).transpose()?;
        let global = self.sections.in_global;
        let line = Line { place, name: name.to_string(), value, global };
        if global {
            self.sections.globals.push(line);
        } else if let Some(job) = self.sections.jobs.last_mut() {
            job.lines.push(line);
        } else {
            return Err(line.error("it stands before the first section; put [global] above it"));
        }
        Ok(())
    }

    /// Replaces `${NAME}` by the environment and `$pagesize` by 4096; errors are at `option`.
    fn expand(&self, text: &str, at: &Place, option: &str) -> Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let (name, behind) = rest[start + 2..]
                .split_once('}')
                .ok_or_else(|| at.error(option, "\"${\" without \"}\""))?;
            let value = self.source.env.get(name).ok_or_else(|| {
                at.error(option, format!("the environment variable {name} is not set"))
            })?;
            out.push_str(value);
            rest = behind;
        }
        out.push_str(rest);
        for word in ["$ncpus", "$mb_memory"] {
            if let Some(value) = self.source.env.get(word) {
                out = out.replace(word, value);
            } else if out.contains(word) {
                let problem = format!(
                    "{word} is a property of this host and means nothing to a simulated drive; \
                     write a number"
                );
                return Err(at.error(option, problem));
            }
        }
        Ok(out.replace("$pagesize", "4096"))
    }
}
