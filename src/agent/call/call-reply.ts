import type { ErrorCode } from '../../lib/error-codes.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';

/** What became of a call of a program of a user. */
export type CallReply =
  | { ok: true; output: Json }
  | { ok: false; error: { code: ErrorCode; message: string; rule?: string } };

/** Characters of an output as JSON. The session keeps them too. */
export const MAX_OUTPUT_CHARACTERS = 100_000;
/** Less than a gateway cuts a reply to, as JSON text. */
const MAX_REPLY_BYTES = 170 * 1_024;
const MAX_MESSAGE = 2_000;
const MAX_RULE = 200;

/** The reply as the text of the message's reply. A reply that is too large is a failed call: a part of an output is not valid. */
export function callReplyText(reply: CallReply): string {
  const text = JSON.stringify(reply);
  return Buffer.byteLength(JSON.stringify(text)) <= MAX_REPLY_BYTES ? text : JSON.stringify(tooLargeOutput());
}

/** The stored result of a tool as a reply. */
export function replyOfResult({ text, isError }: { text: string; isError: boolean }): CallReply {
  const value = jsonIn(text);
  if (isError) return failureIn(member(value, 'error'));
  return value === undefined ? tooLargeOutput() : { ok: true, output: value };
}

/** The reply in a text of a pod, which may have any content. */
export function parseCallReply(text: string): CallReply {
  const value = jsonIn(text);
  if (!isJsonObject(value)) return invalidReply();
  const { ok, output } = value;
  if (ok === true) return output === undefined ? invalidReply() : { ok, output };
  return ok === false ? failureIn(value['error']) : invalidReply();
}

function failureIn(error: Json | undefined): CallReply {
  const code = textAt(error, ['code']);
  if (!isErrorCode(code)) return invalidReply();
  const rule = printable(textAt(error, ['rule']), MAX_RULE);
  const message = printable(textAt(error, ['message']), MAX_MESSAGE);
  return { ok: false, error: { code, message, ...(rule === '' ? {} : { rule }) } };
}

function invalidReply(): CallReply {
  const message = 'the pod of the agent answered with something that is not the result of a call';
  return { ok: false, error: { code: 'TEMPER_TOOL_OUTPUT_INVALID', message } };
}

function tooLargeOutput(): CallReply {
  const message = `the output has more than ${MAX_OUTPUT_CHARACTERS} characters as JSON; ask for less`;
  return { ok: false, error: { code: 'TEMPER_TOOL_OUTPUT_INVALID', message } };
}

function jsonIn(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}
