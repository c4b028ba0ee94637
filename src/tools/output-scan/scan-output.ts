import { isJsonObject, type Json } from '../../lib/json.ts';
import { isUnprintable, joinsEmoji } from '../../lib/printable.ts';
import { argumentTexts } from '../../policy/detect/texts.ts';
import { redactCredentials } from '../../policy/detect/redact.ts';

/** What is done to the texts of a result before a model and the events get them. */
export interface OutputScanSettings {
  /** Credentials become a marker that names their kind. */
  redactsCredentials: boolean;
  /** Characters that no reader sees become escapes. */
  escapesInvisible: boolean;
}

export interface ScannedOutput {
  output: Json;
  /** Credentials that were replaced. */
  credentials: number;
  /** Invisible characters that were escaped. */
  invisible: number;
}

const MAX_DEPTH = 200;
const TOO_DEEP = '[removed: nested deeper than 200 levels]';

/** Scans every text of the output, names of members included. Linear in the output. An output without a finding is returned as it is. */
export function scanOutput(output: Json, settings: OutputScanSettings): ScannedOutput {
  const scan = new OutputScan(settings);
  for (const { name, text } of argumentTexts(output)) scan.text(name, text);
  const { credentials, invisible } = scan;
  if (credentials + invisible === 0) return { output, credentials, invisible };
  return { output: new OutputScan(settings).value('', output, 0), credentials, invisible };
}

/** The same for one text. */
export function scanText(text: string, settings: OutputScanSettings): { text: string; credentials: number } {
  const scan = new OutputScan(settings);
  return { text: scan.text('', text), credentials: scan.credentials };
}

class OutputScan {
  readonly #settings: OutputScanSettings;
  credentials = 0;
  invisible = 0;

  constructor(settings: OutputScanSettings) {
    this.#settings = settings;
  }

  value(name: string, value: Json, depth: number): Json {
    if (typeof value === 'string') return this.text(name, value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= MAX_DEPTH) return TOO_DEEP;
    if (Array.isArray(value)) return value.map((item) => this.value(name, item, depth + 1));
    if (!isJsonObject(value)) return value;
    const members = Object.entries(value).map(([key, item]) => [this.text('', key), this.value(key, item, depth + 1)]);
    return Object.fromEntries(members) as Json;
  }

  text(name: string, text: string): string {
    const { redactsCredentials, escapesInvisible } = this.#settings;
    const shown = escapesInvisible ? this.#escaped(text) : text;
    if (!redactsCredentials) return shown;
    const redacted = redactCredentials(name, shown);
    this.credentials += redacted.count;
    return redacted.text;
  }

  #escaped(text: string): string {
    if (isPlain(text)) return text;
    const characters = Array.from(text);
    let out = '';
    for (const [index, character] of characters.entries()) {
      const code = character.codePointAt(0) ?? 0;
      if (isLayout(code) || !isUnprintable(code) || joinsEmoji(characters, index)) out += character;
      else {
        out += `\\u{${code.toString(16)}}`;
        this.invisible += 1;
      }
    }
    return out;
  }
}

/** Most texts: nothing but printable ASCII, line breaks and tabs. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if ((code < 0x20 || code > 0x7e) && !isLayout(code)) return false;
  }
  return true;
}

function isLayout(code: number): boolean {
  return code === 0x0a || code === 0x09 || code === 0x0d;
}
