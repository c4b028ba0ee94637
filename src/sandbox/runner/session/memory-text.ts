import type { OmittedMember } from '../../session-port.ts';

/** Most members that a snapshot reports as omitted; the parser of the supervisor has the same limit. */
const MAX_OMITTED_MEMBERS = 100;
const MAX_MEMBER_NAME = 64;
const MAX_REASON = 200;

/** Collects the members of `memory` as JSON text, within a number of bytes. */
export class MemoryText {
  readonly omitted: OmittedMember[] = [];
  readonly #maxBytes: number;
  readonly #members: string[] = [];
  #bytes = 2;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** `text` is the JSON of the value. */
  add(name: string, text: string): void {
    const member = `${JSON.stringify(name)}:${text}`;
    const bytes = Buffer.byteLength(member) + 1;
    if (this.#bytes + bytes > this.#maxBytes) {
      this.omit(name, `memory holds at most ${this.#maxBytes} bytes of JSON, and this member exceeds it`);
      return;
    }
    this.#bytes += bytes;
    this.#members.push(member);
  }

  omit(name: string, reason: string): void {
    if (this.omitted.length >= MAX_OMITTED_MEMBERS) return;
    const text = reason.replace(/^TypeError: /, '').slice(0, MAX_REASON);
    this.omitted.push({ name: name.slice(0, MAX_MEMBER_NAME), reason: text });
  }

  text(): string {
    return `{${this.#members.join(',')}}`;
  }
}
