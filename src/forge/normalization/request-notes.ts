import { messageOf } from '../../lib/errors.ts';
import { type Json, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { ForgeViolation } from '../request.ts';
import type { MemberAliases } from './aliases.ts';

const MAX_WARNINGS = 30;

/** Collects what the normalisation of one request changed and could not read. */
export class RequestNotes {
  readonly warnings: string[] = [];
  readonly violations: ForgeViolation[] = [];

  warn(message: string): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push(printable(message, 200));
  }

  report(message: string): void {
    this.violations.push({ code: 'TEMPER_FORGE_SHAPE', message: printable(message, 400) });
  }

  /** Gives members their documented names. A member that has its documented name already keeps its value. */
  renamed(value: JsonObject, aliases: MemberAliases, path: string): JsonObject {
    const renamed = { ...value };
    for (const [member, others] of Object.entries(aliases)) {
      const other = others.find((alias) => Object.hasOwn(value, alias));
      if (other === undefined || Object.hasOwn(value, member)) continue;
      this.warn(`${path}${other} was taken as ${member}`);
      renamed[member] = value[other] ?? null;
      delete renamed[other];
    }
    return renamed;
  }

  /** Parses a value that was sent as JSON text. */
  parsed(value: Json, path: string, example = 'send it as JSON'): Json {
    if (typeof value !== 'string') return value;
    try {
      const parsed = parseUntrustedJson(value);
      this.warn(`${path} was JSON text; it was parsed`);
      return parsed;
    } catch (error) {
      const excerpt = printable(JSON.stringify(value.slice(0, 40)), 60);
      const reason = printable(messageOf(error), 120);
      this.report(`${path} is the text ${excerpt}, which is not valid JSON (${reason}); ${example}`);
      return value;
    }
  }

  /** A list that was sent as text: JSON, or its only item. */
  list(text: string, path: string): Json {
    if (text.trimStart().startsWith('[')) return this.parsed(text, path);
    this.warn(`${path} was text; it was taken as a list of one`);
    return [text];
  }
}
