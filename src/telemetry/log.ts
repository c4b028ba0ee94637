import { pino, stdTimeFunctions } from 'pino';
import { isTemperError, messageOf } from '../lib/errors.ts';
import { isUnprintable } from '../lib/printable.ts';
import type { SecretRedactor } from './secret-redactor.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Writes one JSON line per log entry. Fields are machine-readable facts; never prompts, or arguments or results of tools. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

export interface LoggerOptions {
  level: LogLevel;
  destination: { write(line: string): unknown };
  secrets: SecretRedactor;
}

/**
 * Redacts every complete line, including field names, messages, errors and their causes. Then escapes characters that control a terminal or
 * a log viewer (C1 controls, bidirectional and zero-width marks). The line stays valid JSON.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, destination, secrets } = options;
  return pino(
    {
      level,
      base: null,
      messageKey: 'message',
      errorKey: 'error',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: errorFields },
    },
    { write: (line: string) => void destination.write(safeLine(line, secrets)) },
  );
}

function safeLine(line: string, secrets: SecretRedactor): string {
  return secrets.redact(line).replaceAll(/[^\x20-\x7e\n]/gu, escaped);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (!isUnprintable(code)) return character;
  let out = '';
  for (let unit = 0; unit < character.length; unit += 1) {
    out += `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`;
  }
  return out;
}

/** The maximum length of a logged chain of causes. */
const MAX_CAUSES = 4;

/** Code, message and causes. Includes the stack of every error that is not a TemperError, since such an error is a defect. */
function errorFields(error: unknown, depth = 0): object {
  const message = messageOf(error);
  if (!(error instanceof Error)) return { message };
  const cause = error.cause === undefined || depth >= MAX_CAUSES ? {} : { cause: errorFields(error.cause, depth + 1) };
  if (isTemperError(error)) return { code: error.code, message, ...cause };
  return { name: error.name, message, stack: error.stack, ...cause };
}
