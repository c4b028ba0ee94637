import type { AnyNode, Program } from 'acorn';
import { childrenOf } from '../static/ast.ts';
import { parseSource } from '../static/parse.ts';
import { otherLanguage } from './refusal-reasons.ts';
import { stripTypes } from './strip-types.ts';

/** Source that parses, with its tree. */
export interface ReadableSource {
  source: string;
  program: Program;
  repairs: string[];
}

/** A part of a program that models send in place of a program, and the text around it that completes it. */
interface PartialForm {
  before: string;
  after: string;
  repair: string;
  /** Whether the completed text has this form. */
  fits(program: Program): boolean;
  /** The source for the completed text; the text itself when absent. */
  finish?(text: string, program: Program): string;
}

const WHOLE: PartialForm = { before: '', after: '', repair: '', fits: () => true };
const BODY_REPAIR = 'the statements were put into function execute(input)';

const FORMS: readonly PartialForm[] = [
  WHOLE,
  {
    before: 'const execute = ',
    after: '',
    repair: 'the function without a name was named execute',
    fits: ({ body: [first] }) =>
      first?.type === 'VariableDeclaration' && first.declarations[0]?.init?.type === 'FunctionExpression',
  },
  {
    before: '({',
    after: '\n})',
    repair: 'the method was taken as a function',
    fits: (program) => onlyMethod(program) !== undefined,
    finish(text, program) {
      const start = onlyMethod(program)?.start ?? 0;
      return `${text.slice('({'.length, start)}function ${text.slice(start, -'\n})'.length)}`.replace(
        /\basync(\s{1,20})function /,
        'async$1function ',
      );
    },
  },
  { before: 'function execute(input) { ', after: '\n}', repair: BODY_REPAIR, fits: isBody },
  { before: 'async function execute(input) { ', after: '\n}', repair: BODY_REPAIR, fits: isBody },
];

/** Parses a source, if need be without its types and completed to a program. Undefined when it is not JavaScript in any form. */
export function readSource(source: string): ReadableSource | undefined {
  const plain = parseSource(source);
  if (plain.program !== undefined) return { source, program: plain.program, repairs: [] };
  // What exceeds a limit is not parsed again.
  if (!plain.syntax) return undefined;
  const form = readForms(source, false);
  if (form !== undefined || otherLanguage(source) !== undefined) return form;
  return readForms(source, true);
}

function readForms(source: string, typed: boolean): ReadableSource | undefined {
  for (const form of FORMS) {
    const whole = `${form.before}${source}${form.after}`;
    const text = typed ? stripTypes(whole).code : whole;
    const program = text === undefined ? undefined : parseSource(text).program;
    if (text === undefined || program === undefined || !form.fits(program)) continue;
    const finished = form.finish?.(text, program) ?? text;
    const final = finished === text ? program : parseSource(finished).program;
    if (final === undefined) continue;
    const repairs = [...(typed ? ['the TypeScript types were removed'] : []), ...(form === WHOLE ? [] : [form.repair])];
    return { source: finished, program: final, repairs };
  }
  return undefined;
}

/** The key of the only method of `({ execute(input) { … } })`. */
function onlyMethod({ body: [first] }: Program): AnyNode | undefined {
  if (first?.type !== 'ExpressionStatement' || first.expression.type !== 'ObjectExpression') return undefined;
  const [property, second] = first.expression.properties;
  if (property?.type !== 'Property' || !property.method || property.computed || second !== undefined) return undefined;
  return property.value.type === 'FunctionExpression' && property.value.generator ? undefined : property.key;
}

/** Whether the wrapped text is a body: it returns, and it does not define the entry itself. */
function isBody({ body }: Program): boolean {
  const [only, second] = body;
  if (only?.type !== 'FunctionDeclaration' || second !== undefined) return false;
  const inner = only.body.body;
  const definesEntry = inner.some((node) => node.type === 'FunctionDeclaration' && node.id.name === 'execute');
  return !definesEntry && inner.some(returns);
}

function returns(node: AnyNode): boolean {
  const stack: AnyNode[] = [node];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    if (item.type === 'ReturnStatement') return true;
    if (!/Function|Class/.test(item.type)) stack.push(...childrenOf(item));
  }
  return false;
}
