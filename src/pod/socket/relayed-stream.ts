import { Duplex } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Characters of a stream that are on their way: sent, and not yet taken by the reader on the other side. */
export const WINDOW_CHARACTERS = 262_144;
/** Characters of one frame. */
const MAX_PART = 65_536;

export interface RelayedStreamLink {
  /** Sends characters to the other side. */
  send(text: string): void;
  /** Reports to the other side how many of its characters were taken. */
  taken(characters: number): void;
}

/**
 * One end of a stream of text over the socket of a pod. A reader that is slow stops only its writer: the other frames of the socket go on.
 */
export class RelayedStream extends Duplex {
  readonly #link: RelayedStreamLink;
  readonly #decoder = new StringDecoder('utf8');
  readonly #received: string[] = [];
  #unread = 0;
  #isWanted = false;
  #isFinished = false;
  #free = WINDOW_CHARACTERS;
  #unsent = '';
  #sent: (() => void) | undefined;

  constructor(link: RelayedStreamLink) {
    super({ decodeStrings: false });
    this.#link = link;
  }

  /** Characters from the other side. False when there are more than it may send. */
  receive(text: string): boolean {
    this.#unread += text.length;
    if (this.#unread > WINDOW_CHARACTERS || this.#isFinished) return false;
    if (text !== '' && !this.destroyed) this.#received.push(text);
    this.#hand();
    return true;
  }

  /** The other side has taken characters. False when it was sent fewer. */
  release(characters: number): boolean {
    this.#free += characters;
    if (this.#free > WINDOW_CHARACTERS) return false;
    this.#sendPart();
    return true;
  }

  /** The other side sends no more. */
  finish(): void {
    this.#isFinished = true;
    this.#hand();
  }

  override _read(): void {
    this.#isWanted = true;
    this.#hand();
  }

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.#unsent = typeof chunk === 'string' ? chunk : this.#decoder.write(chunk);
    this.#sent = done;
    this.#sendPart();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#received.length = 0;
    this.#unsent = '';
    done(error);
  }

  #sendPart(): void {
    while (this.#unsent !== '' && this.#free > 0) {
      const part = wholeCharacters(this.#unsent, Math.min(MAX_PART, this.#free));
      if (part === '') return;
      this.#unsent = this.#unsent.slice(part.length);
      this.#free -= part.length;
      this.#link.send(part);
    }
    if (this.#unsent !== '') return;
    const done = this.#sent;
    this.#sent = undefined;
    done?.();
  }

  #hand(): void {
    while (this.#isWanted) {
      const text = this.#received.shift();
      if (text === undefined) break;
      this.#isWanted = this.push(text, 'utf8');
      this.#unread -= text.length;
      this.#link.taken(text.length);
    }
    if (this.#isFinished && this.#received.length === 0 && !this.readableEnded) this.push(null);
  }
}

/** The first `length` characters of a text, or one fewer: half of a pair would arrive as another character. */
function wholeCharacters(text: string, length: number): string {
  const code = text.charCodeAt(length - 1);
  const isHalf = length < text.length && code >= 0xd800 && code <= 0xdbff;
  return text.slice(0, isHalf ? length - 1 : length);
}
