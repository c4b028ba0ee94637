import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { isUnprintable } from '../../lib/printable.ts';
import type { ForgeViolation } from '../request.ts';

const LINE_FEED = 0x0a;
const TAB = 0x09;

/**
 * Refuses invisible characters (control characters, zero-width and bidirectional marks, tags) in the texts of a tool that
 * agents see. A user who reads a description must read the same text as a model.
 */
export function checkHiddenText(artifact: ToolArtifact): ForgeViolation[] {
  const shown = {
    description: artifact.description,
    inputSchema: artifact.inputSchema,
    outputSchema: artifact.outputSchema,
  };
  return Object.entries(shown).flatMap(([field, text]) => {
    const code = firstHidden(text);
    if (code === undefined) return [];
    const message = `${field} contains the invisible character U+${code.toString(16).toUpperCase().padStart(4, '0')}; remove it`;
    return [{ code: 'TEMPER_FORGE_SHAPE' as const, message }];
  });
}

function firstHidden(text: string): number | undefined {
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code !== LINE_FEED && code !== TAB && isUnprintable(code)) return code;
  }
  // JSON text contains a control character as an escape.
  const escaped = /\\u00(0[0-8bcef]|1[0-9a-f]|7f)/.exec(text);
  return escaped === null ? undefined : Number.parseInt(escaped[1] ?? '0', 16);
}
