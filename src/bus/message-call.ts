import { isDigest } from '../lib/canonical.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { MessageCall } from './port.ts';

/** Characters of the arguments of a call, as JSON. */
export const MAX_CALL_CHARACTERS = 100_000;
const TOOL = /^[A-Za-z0-9_.-]{1,128}$/;

/** The call of a message; undefined for a value that is not a call. The input is untrusted. */
export function parseMessageCall(value: Json | undefined): MessageCall | undefined {
  if (!isJsonObject(value)) return undefined;
  const { tool, digest, input } = value;
  if (typeof tool !== 'string' || !TOOL.test(tool) || !isJsonObject(input)) return undefined;
  if (JSON.stringify(input).length > MAX_CALL_CHARACTERS) return undefined;
  if (digest === undefined) return { tool, input };
  return isDigest(digest) ? { tool, digest, input } : undefined;
}

/** What users and the model of the agent read in place of the text of a message. */
export function callText({ tool }: MessageCall): string {
  return `[A program of the user calls the tool "${tool}".]`;
}
