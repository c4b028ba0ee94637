import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { isUnprintable } from '../../lib/printable.ts';
import { isInvisible } from '../../lib/text/invisible.ts';
import { isJsonObject, type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { ForgeViolation } from '../request.ts';

/** An emoji of several characters: joiners and presentation marks draw it, and stand only between or after its parts. */
const EMOJI_PART = String.raw`\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?`;
const EMOJI = new RegExp(`${EMOJI_PART}(?:\\u200d${EMOJI_PART}){0,8}|[0-9#*]\\ufe0f\\u20e3`, 'gu');
/** Each mark of an emoji could carry a bit; a description needs few emoji. */
const MAX_EMOJI_MARKS = 32;
/** Blanks of several widths, or many marks on one letter, could carry text as well. */
const BLANK_RUN = /(?:[^\S\x20\t\n]|\x20(?=[^\S\x20\t\n])){3}|[^\S\x20\t\n\r\u3000]{2}/u;
const STACKED_MARKS = /\p{M}{7}/u;

/**
 * Refuses invisible characters (control characters, zero-width and bidirectional marks, tags) in the texts of a tool that
 * agents see. A user who reads a description must read the same text as a model.
 */
export function checkHiddenText(artifact: ToolArtifact): ForgeViolation[] {
  const shown: Record<string, string[]> = {
    description: [artifact.description],
    inputSchema: textsOf(parseUntrustedJson(artifact.inputSchema)),
    outputSchema: textsOf(parseUntrustedJson(artifact.outputSchema)),
  };
  return Object.entries(shown).flatMap(([field, texts]) => {
    const problem = hiddenProblem(texts);
    return problem === undefined
      ? []
      : [{ code: 'TEMPER_FORGE_SHAPE' as const, message: `${field} contains ${problem}` }];
  });
}

function hiddenProblem(texts: readonly string[]): string | undefined {
  const code = texts.map(firstHidden).find((found) => found !== undefined);
  if (code !== undefined) {
    return `the invisible character U+${code.toString(16).toUpperCase().padStart(4, '0')}; remove it`;
  }
  if (texts.some((text) => BLANK_RUN.test(text))) return 'blanks of special widths side by side; use ordinary spaces';
  if (texts.some((text) => STACKED_MARKS.test(text))) return 'more than six marks on one letter; remove them';
  const marks = texts.reduce((sum, text) => sum + (text.match(/\u200d|\ufe0f/g)?.length ?? 0), 0);
  if (marks <= MAX_EMOJI_MARKS) return undefined;
  return `${marks} joiners and marks of emoji, and at most ${MAX_EMOJI_MARKS} are allowed; use fewer emoji`;
}

function firstHidden(text: string): number | undefined {
  for (const character of text.replaceAll(EMOJI, '')) {
    if (character === '\n' || character === '\t') continue;
    const code = character.codePointAt(0) ?? 0;
    if (isUnprintable(code) || isInvisible(character)) return code;
  }
  return undefined;
}

/** Every member name and text of a schema. */
function textsOf(value: Json): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return isJsonObject(value) ? Object.entries(value).flatMap(([key, item]) => [key, ...textsOf(item)]) : [];
}
