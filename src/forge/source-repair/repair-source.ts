import type { Program } from 'acorn';
import { parseSource } from '../static/parse.ts';
import { findProblems } from '../static/rules.ts';
import { findEntry, topLevelValues, countNames } from './entry.ts';
import { isFunctionValue, removeExports } from './exports.ts';
import { startsWithFence, unfence } from './fences.ts';
import { positionalParameters } from './parameters.ts';
import { readSource } from './readable-source.ts';
import { applyEdits } from './edits.ts';
import { asciiNames } from './ascii-names.ts';

/** A source in the documented form, and the changes that led to it, one sentence each. */
export interface RepairedSource {
  source: string;
  repairs: string[];
}

const BYTE_ORDER_MARK = '\ufeff';
/** The first line of a program for a JavaScript runtime; its line end stays, so that lines keep their numbers. */
const INTERPRETER_LINE = /^#![^\n]{0,100}\b(?:node|bun|deno|tsx|ts-node)\b[^\n]{0,100}/;

/**
 * Brings source as models write it into the documented form: a script that defines `execute(input)`. Every change is
 * unambiguous; whatever is not stays as it is, and the static check reports it. `properties` are the members of the input.
 */
export function repairSource(code: string, toolName: string, properties: readonly string[]): RepairedSource {
  const start = removePreamble(code);
  const readable = readCode(start.source);
  if (readable === undefined) return start;
  const script = removeExports(readable.source, readable.program);
  const ascii = inAscii(script.source, script.source === readable.source ? readable.program : undefined);
  if (ascii === undefined) return start;
  const entry = withEntry(ascii.source, ascii.program, { toolName, properties, exported: script.exported });
  const repairs = [start, readable, script, ascii, entry].flatMap((step) => step.repairs);
  return { source: entry.source, repairs };
}

/** Removes the marks that only describe how to read the text. */
function removePreamble(code: string): RepairedSource {
  const marked = code.startsWith(BYTE_ORDER_MARK);
  const text = marked ? code.slice(BYTE_ORDER_MARK.length) : code;
  const interpreter = INTERPRETER_LINE.exec(text)?.[0] ?? '';
  const repairs = [
    ...(marked ? ['the byte order mark was removed'] : []),
    ...(interpreter === '' ? [] : ['the #! line was removed']),
  ];
  return { source: text.slice(interpreter.length), repairs };
}

/** `parsed` is the tree of the source, if it is known. */
function inAscii(
  source: string,
  parsed: Program | undefined,
): { source: string; program: Program; repairs: string[] } | undefined {
  const program = parsed ?? parseSource(source).program;
  if (program === undefined) return undefined;
  const renamed = asciiNames(source, program);
  const again = renamed === undefined ? undefined : parseSource(renamed).program;
  if (renamed === undefined || again === undefined) return { source, program, repairs: [] };
  return { source: renamed, program: again, repairs: ['names with letters outside a-z were quoted or renamed'] };
}

/** Reads the code itself, or the code of the one fenced block in it. */
function readCode(source: string): { source: string; program: Program; repairs: string[] } | undefined {
  const whole = startsWithFence(source) ? undefined : readSource(source);
  if (whole !== undefined) return whole;
  const block = unfence(source);
  const inner = block === undefined ? undefined : readSource(block.code);
  if (block === undefined || inner === undefined) return undefined;
  const repair = block.prose
    ? 'the fence and the text around the code were removed'
    : 'the fence around the code was removed';
  return { ...inner, repairs: [repair, ...inner.repairs] };
}

interface EntryContext {
  toolName: string;
  properties: readonly string[];
  exported: readonly string[];
}

function withEntry(source: string, program: Program, context: EntryContext): RepairedSource {
  if (findProblems(program).definesEntry) return withInputObject(source, program, context.properties);
  const entry = findEntry(program, context);
  if (entry === undefined) return { source, repairs: [] };
  return { source: `${source.trimEnd()}\n${entry.append}\n`, repairs: [entry.repair] };
}

/** Changes `execute(a, b)` to `execute({ a, b })` when a and b are the members of the input and nothing else calls execute. */
function withInputObject(source: string, program: Program, properties: readonly string[]): RepairedSource {
  const unchanged: RepairedSource = { source, repairs: [] };
  const entry = topLevelValues(program).find(({ name }) => name === 'execute' || name === 'run');
  if (entry === undefined || !isFunctionValue(entry.node) || countNames(program).get(entry.name) !== 1)
    return unchanged;
  const { params } = entry.node;
  const [first, last] = [params[0], params.at(-1)];
  if (first === undefined || last === undefined || positionalParameters(entry.node, properties) === undefined) {
    return unchanged;
  }
  const isBare = !source.slice(entry.node.start, first.start).includes('(');
  const list = `{ ${source.slice(first.start, last.end)} }`;
  const edit = { start: first.start, end: last.end, text: isBare ? `(${list})` : list };
  const repair = `${entry.name} takes one object; its parameters were taken as the members of the input`;
  return { source: applyEdits(source, [edit]), repairs: [repair] };
}
