import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';

const MAX_WARNINGS = 10;

/** `${input.x}` and `{{input.x}}` of other template languages. */
const BRACES = /\$\{\s{0,4}([\w.[\]$]{1,120})\s{0,4}\}|\{\{\s{0,4}([\w.[\]$]{1,120})\s{0,4}\}\}/g;
/** `$name`, which refers to nothing unless it is one of the roots. */
const DOLLAR_NAME = /\$([A-Za-z_][\w-]{0,62})((?:\.\w{1,62}){0,8})/g;
const ROOTS: readonly string[] = ['input', 'prev', 'steps'];

/** Warns of texts in mappings that look like references of another notation and are plain text here. */
export function templateWarnings({ implementation }: ToolArtifact): string[] {
  const steps = implementation.steps ?? [];
  const names = steps.map(({ name }) => name);
  const warnings = steps.flatMap(({ name, inputMapping }) =>
    textsOf(parseUntrustedJson(inputMapping)).flatMap((text) =>
      referenceHints(text, names).map((hint) => printable(`step "${name}": ${hint}`, 240)),
    ),
  );
  return [...new Set(warnings)].slice(0, MAX_WARNINGS);
}

/** The right form of each reference that the text writes in another notation. */
function referenceHints(text: string, stepNames: readonly string[]): string[] {
  const hints = [...text.matchAll(BRACES)].map(([found, dollar, double]) => {
    return `${found} is plain text; write ${rightForm(dollar ?? double ?? '', stepNames)}`;
  });
  for (const [found, name = '', path = ''] of text.matchAll(DOLLAR_NAME)) {
    if (ROOTS.includes(name) || !stepNames.includes(name)) continue;
    hints.push(`${found} is plain text; write $steps.${name}${path}`);
  }
  return hints;
}

/** The right form of what a condition that does not parse contains of other notations. */
export function conditionHints(condition: string, stepNames: readonly string[]): string[] {
  const hints = referenceHints(condition, stepNames).map((hint) => hint.replace(' is plain text; write', ': write'));
  if (/\.length\s{0,4}\(/.test(condition)) hints.push('.length() is not a function; write .length');
  if (/\?\./.test(condition)) hints.push('?. is not needed: what leads to nothing does not hold; write a dot');
  if (/[^=!<>]=[^=]/.test(condition)) hints.push('= is expected to be an operator; write == for equality');
  if (/[+*%]|\bincludes\b|\bmatch\b/.test(condition)) {
    hints.push('a condition only compares; compute in a sandbox tool, in a step before this one');
  }
  return hints;
}

function rightForm(path: string, stepNames: readonly string[]): string {
  const bare = path.startsWith('$') ? path.slice(1) : path;
  const [root = ''] = bare.split(/[.[]/, 1);
  if (ROOTS.includes(root)) return `$${bare}`;
  return stepNames.includes(root) ? `$steps.${bare}` : `$input.${bare}`;
}

function textsOf(value: Json): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return (Array.isArray(value) ? value : Object.values(value)).flatMap(textsOf);
}
