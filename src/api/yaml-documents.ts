import { LineCounter, isAlias, isMap, isScalar, isSeq, parseAllDocuments } from 'yaml';
import type { Document, Node, YAMLError, YAMLMap } from 'yaml';
import type { Json, JsonObject } from '../lib/json.ts';
import type { Finding, FieldPath, RuleName } from './findings.ts';

export interface SourcePosition {
  /** Line and column start at 1. */
  line: number;
  column: number;
}

export interface ParsedDocument {
  value: Json;
  /** The position of the member, or of its nearest existing parent. */
  locate(path: FieldPath): SourcePosition;
  /** The source text of the value if it is a scalar: `2.00`, not 2. */
  source(path: FieldPath): string | undefined;
}

/** An error in the YAML syntax or structure. */
interface SyntaxFinding extends Finding {
  position: SourcePosition;
}

export interface ParsedText {
  documents: ParsedDocument[];
  errors: SyntaxFinding[];
}

const MAX_DEPTH = 64;
const MAX_NODES = 100_000;
const MAX_ALIASES = 100;
const MAX_ERRORS = 20;
const MAX_DOCUMENTS = 1_000;

/**
 * Parses untrusted YAML 1.2 or JSON text with several documents, and records the position of every member. The number of alias
 * expansions is limited, duplicate keys are errors, and no tag creates code or a custom type.
 */
export function parseDocuments(text: string): ParsedText {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    // The check of the library is quadratic in the number of keys; Walk checks keys in linear time.
    uniqueKeys: false,
    schema: 'core',
    version: '1.2',
    stringKeys: true,
    logLevel: 'silent',
  });
  const found: ParsedText = { documents: [], errors: [] };
  if (!Array.isArray(parsed)) return found;
  const positionOf = (offset: number): SourcePosition => position(lines, offset);
  if (parsed.length > MAX_DOCUMENTS) {
    const message = `the file contains ${parsed.length} documents`;
    const fix = `keep at most ${MAX_DOCUMENTS} in a file`;
    found.errors.push({ path: [], rule: 'document-count', message, fix, position: { line: 1, column: 1 } });
    return found;
  }
  for (const document of parsed) {
    const syntaxErrors = [...document.errors, ...document.warnings].slice(0, MAX_ERRORS);
    if (syntaxErrors.length === 0) readDocument(document, positionOf, found);
    else found.errors.push(...syntaxErrors.map((syntaxError) => syntaxFinding(syntaxError, positionOf)));
  }
  return found;
}

function readDocument(document: Document, positionOf: (offset: number) => SourcePosition, found: ParsedText): void {
  if (document.contents === null) return;
  const walk = new Walk(document, positionOf);
  const value = walk.value(document.contents, 0);
  found.errors.push(...walk.errors);
  if (value === undefined || value === null || walk.spent) return;
  found.documents.push({
    value,
    locate: (path) => walk.locate(path),
    source: (path) => walk.source(path),
  });
}

class Walk {
  readonly errors: SyntaxFinding[] = [];
  /** A limit was exceeded, so the value is incomplete. */
  spent = false;
  private readonly document: Document;
  private readonly positionOf: (offset: number) => SourcePosition;
  private nodes = 0;
  private aliases = 0;

  constructor(document: Document, positionOf: (offset: number) => SourcePosition) {
    this.document = document;
    this.positionOf = positionOf;
  }

  /** The JSON value of a node; undefined when a limit is exceeded, which adds one entry to `errors`. */
  value(node: unknown, depth: number): Json | undefined {
    this.nodes += 1;
    if (this.nodes > MAX_NODES)
      return this.refuse(node, 'document-size', `the document has more than ${MAX_NODES} values`);
    if (depth > MAX_DEPTH) return this.refuse(node, 'depth', `values are nested deeper than ${MAX_DEPTH}`);
    if (isAlias(node)) {
      this.aliases += 1;
      if (this.aliases > MAX_ALIASES) {
        return this.refuse(node, 'alias-bomb', `the document uses more than ${MAX_ALIASES} aliases`);
      }
      return this.value(node.resolve(this.document), depth + 1);
    }
    if (isMap(node)) return this.map(node, depth);
    if (isSeq(node)) return node.items.map((item) => this.value(item, depth + 1) ?? null);
    return isScalar(node) ? scalarValue(node.value) : null;
  }

  locate(path: FieldPath): SourcePosition {
    let offset = offsetOf(this.document.contents);
    let node: unknown = this.document.contents;
    for (const segment of path) {
      const step = this.step(node, segment);
      if (step === undefined) break;
      offset = step.offset ?? offset;
      node = step.value;
    }
    return this.positionOf(offset ?? 0);
  }

  source(path: FieldPath): string | undefined {
    let node: unknown = this.document.contents;
    for (const segment of path) node = this.step(node, segment)?.value;
    return isScalar(node) ? node.source : undefined;
  }

  private step(node: unknown, segment: string | number): { value: unknown; offset: number | undefined } | undefined {
    const target = isAlias(node) ? node.resolve(this.document) : node;
    if (isSeq(target) && typeof segment === 'number') {
      const item = target.items[segment];
      return item === undefined ? undefined : { value: item, offset: offsetOf(item) };
    }
    if (!isMap(target)) return undefined;
    const pair = target.items.findLast((candidate) => keyText(candidate.key) === String(segment));
    return pair === undefined ? undefined : { value: pair.value, offset: offsetOf(pair.key) };
  }

  private map(node: YAMLMap, depth: number): JsonObject {
    const members: JsonObject = {};
    for (const pair of node.items) {
      const key = keyText(pair.key);
      if (Object.hasOwn(members, key)) this.duplicate(pair.key, key);
      const value = this.value(pair.value, depth + 1) ?? null;
      // Assigning `__proto__` would set the prototype. As an ordinary member it is reported as an unknown field.
      Object.defineProperty(members, key, { value, enumerable: true, writable: true, configurable: true });
    }
    return members;
  }

  private duplicate(key: unknown, name: string): void {
    if (this.errors.length >= MAX_ERRORS) return;
    this.errors.push({
      path: [name],
      rule: 'duplicate-key',
      message: `the key ${JSON.stringify(name.slice(0, 64))} occurs twice in the same map`,
      fix: 'keep one of them',
      position: this.positionOf(offsetOf(key) ?? 0),
    });
  }

  private refuse(node: unknown, rule: RuleName, message: string): undefined {
    this.spent = true;
    if (!this.errors.some((error) => error.rule === rule)) {
      const fix = 'write the values without aliases, and split large documents';
      this.errors.push({ path: [], rule, message, fix, position: this.positionOf(offsetOf(node) ?? 0) });
    }
    return undefined;
  }
}

function scalarValue(value: unknown): Json {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  return null;
}

function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value) : '';
}

function offsetOf(node: unknown): number | undefined {
  return (node as Node | null)?.range?.[0];
}

function position(lines: LineCounter, offset: number): SourcePosition {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

const SYNTAX_FIXES: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'indent with spaces',
  MISSING_CHAR: 'close the quote or the bracket',
  BAD_INDENT: 'align it with the other members of the map',
  TAG_RESOLVE_FAILED: 'write the value without a tag',
  KEY_OVER_1024_CHARS: 'shorten the key',
};

function syntaxFinding(error: YAMLError, positionOf: (offset: number) => SourcePosition): SyntaxFinding {
  const deep = error.message.includes('call stack');
  return {
    path: [],
    rule: error.code === 'TAB_AS_INDENT' ? 'yaml-tabs' : deep ? 'depth' : 'yaml-syntax',
    message: deep ? 'values are nested too deep' : error.message,
    fix: deep ? 'flatten the document' : (SYNTAX_FIXES[error.code] ?? 'correct the YAML at this place'),
    position: positionOf(error.pos[0]),
  };
}
