import { subjectPatternError } from '../events/subject.ts';
import { printable } from '../lib/printable.ts';
import { matchesStars } from '../lib/text/star-pattern.ts';
import type { PatternKind, PatternRules } from './findings.ts';

/**
 * The default pattern language for manifests, without the policy module: it reports only clear syntax errors, and it reports
 * a pattern as wider than a ceiling only when this is true under every interpretation of `*`.
 */
export const PLAIN_PATTERN_RULES: PatternRules = {
  patternError(text, kind) {
    const error = syntaxError(text, kind);
    return error === undefined ? undefined : `"${printable(text, 80)}" is not a valid pattern: ${error}`;
  },
  covers(ceiling, text, kind) {
    // The witness replaces each `*` with a character that no pattern contains; a ceiling that matches the witness matches every value.
    const witness = normal(text, kind).replaceAll(/\*+/g, '\u{10FFFD}');
    return ceiling.some((pattern) => matchesStars(widened(pattern, kind), witness));
  },
};

function normal(text: string, kind: PatternKind): string {
  if (kind === 'tool') return text.trim().toLowerCase();
  if (kind === 'host') {
    const host = text.trim().toLowerCase().replace(/:443$/, '');
    return host.replace(/\.(?=(?::[\d*]+)?$)/, '');
  }
  if (kind !== 'path') return text;
  const segments = text.split('/').filter((segment) => segment !== '' && segment !== '.');
  return (text.startsWith('/') ? '/' : '') + segments.join('/');
}

/** Matches at least as much as the pattern: `**` may match zero segments, and any port may match the default port. */
function widened(pattern: string, kind: PatternKind): string {
  const text = normal(pattern, kind);
  if (kind === 'event') return text.replace(/>$/, '*');
  if (kind === 'tool' || kind === 'name') return text;
  return text.replace(/:\*$/, '*').replaceAll(/[./]?\*\*[./]?/g, '*');
}

function syntaxError(text: string, kind: PatternKind): string | undefined {
  if (kind === 'event') return subjectPatternError(text);
  if (text.trim() === '') return 'it is empty';
  if (text !== text.trim()) return 'it begins or ends with a space';
  if (/\p{Cc}/u.test(text)) return 'it contains a control character';
  if (kind === 'path' && text.split('/').includes('..')) return 'it contains a ".." segment';
  if (kind === 'key' && text.split('.').includes('')) return 'a segment is empty';
  if (kind === 'host' && (text.includes('/') || text.includes('..')))
    return 'it is not a host: write no scheme and no path';
  return undefined;
}
