import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { isUnprintable } from '../../lib/printable.ts';
import { isJsonObject, type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { ForgeViolation } from '../request.ts';

/** Controls, marks that change the direction or the look of text, fillers, and every character that is usually not drawn. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;
/** An emoji of several characters: joiners and presentation marks draw it, and stand only between or after its parts. */
const EMOJI_PART = String.raw`\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?`;
const EMOJI = new RegExp(`${EMOJI_PART}(?:\\u200d${EMOJI_PART}){0,8}|[0-9#*]\\ufe0f\\u20e3`, 'gu');

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
    const code = texts.map(firstHidden).find((found) => found !== undefined);
    if (code === undefined) return [];
    const message = `${field} contains the invisible character U+${code.toString(16).toUpperCase().padStart(4, '0')}; remove it`;
    return [{ code: 'TEMPER_FORGE_SHAPE' as const, message }];
  });
}

function firstHidden(text: string): number | undefined {
  for (const character of text.replaceAll(EMOJI, '')) {
    if (character === '\n' || character === '\t') continue;
    const code = character.codePointAt(0) ?? 0;
    if (isUnprintable(code) || INVISIBLE.test(character)) return code;
  }
  return undefined;
}

/** Every member name and text of a schema. */
function textsOf(value: Json): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return isJsonObject(value) ? Object.entries(value).flatMap(([key, item]) => [key, ...textsOf(item)]) : [];
}
