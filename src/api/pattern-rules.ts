import { printable } from '../lib/escape.ts';
import type { PatternKind, PatternRules } from './findings.ts';

/**
 * The pattern language as far as manifests need it when nobody brings the whole: it finds what is plainly malformed, and it calls
 * a pattern wider than a ceiling only when it is so under every reading of `*`.
 */
export const PLAIN_PATTERN_RULES: PatternRules = {
  flaw(text, kind) {
    const flaw = plainFlaw(text, kind);
    return flaw === undefined ? undefined : `"${printable(text, 80)}" is no pattern: ${flaw}`;
  },
  covers(ceiling, text, kind) {
    // A letter that no pattern holds stands for "anything"; a ceiling that lets it pass lets everything pass.
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

/** Stands for no less than the pattern: `**` may stand for no segment at all, and any port for the usual one. */
function widened(pattern: string, kind: PatternKind): string {
  const text = normal(pattern, kind);
  if (kind === 'tool' || kind === 'name') return text;
  return text.replace(/:\*$/, '*').replaceAll(/[./]?\*\*[./]?/g, '*');
}

/** First piece at the start, last at the end, the others leftmost in between: nothing is tried twice. */
function matchesStars(pattern: string, text: string): boolean {
  const pieces = pattern.split(/\*+/);
  const first = pieces.shift() ?? '';
  const last = pieces.pop();
  if (last === undefined) return first === text;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let from = first.length;
  for (const piece of pieces) {
    const found = text.indexOf(piece, from);
    if (found < 0) return false;
    from = found + piece.length;
  }
  return from <= text.length - last.length;
}

function plainFlaw(text: string, kind: PatternKind): string | undefined {
  if (text.trim() === '') return 'it is empty';
  if (text !== text.trim()) return 'it begins or ends with a space';
  if (/\p{Cc}/u.test(text)) return 'it holds a control character';
  if (kind === 'path' && text.split('/').includes('..')) return 'it holds a ".." segment';
  if (kind === 'key' && text.split('.').includes('')) return 'a segment is empty';
  if (kind === 'host' && (text.includes('/') || text.includes('..')))
    return 'it is not a host: write no scheme and no path';
  return undefined;
}
