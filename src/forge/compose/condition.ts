import { isJsonObject, type Json } from '../../lib/json.ts';
import { sameJson } from '../test-runs/compare-json.ts';
import { type StepBindings, readReference, type ValueReference, resolveReference } from './references.ts';

/** A parsed condition of a step. It does not distinguish undefined from null. */
export type StepCondition =
  | { kind: 'literal'; value: Json }
  | { kind: 'reference'; reference: ValueReference }
  | { kind: 'not'; operand: StepCondition }
  | { kind: 'binary'; operator: Operator; left: StepCondition; right: StepCondition };

type Operator = '||' | '&&' | '==' | '!=' | '<=' | '>=' | '<' | '>';

const MAX_DEPTH = 32;

/** Operators by precedence, lowest first. Of two with the same beginning the longer comes first. */
const PRECEDENCE: readonly (readonly [text: string, operator: Operator][])[] = [
  [['||', '||']],
  [['&&', '&&']],
  [
    ['===', '=='],
    ['!==', '!='],
    ['==', '=='],
    ['!=', '!='],
  ],
  [
    ['<=', '<='],
    ['>=', '>='],
    ['<', '<'],
    ['>', '>'],
  ],
];

const LITERAL_WORDS: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['true', true],
  ['false', false],
  ['null', null],
  ['undefined', null],
]);

/** Thrown by the parser; the message names the position. */
export class ConditionError extends Error {}

/**
 * `expression := or; or := and ('||' and)*; and := equal ('&&' equal)*; equal := order (('=='|'!=') order)*;
 *  order := unary (('<'|'<='|'>'|'>=') unary)*; unary := '!' unary | '(' or ')' | reference | literal`. Throws ConditionError.
 */
export function parseCondition(text: string): StepCondition {
  const parser = new Parser(text);
  return parser.whole();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): StepCondition {
    const condition = this.#binary(0);
    this.#space();
    if (this.#at < this.#text.length) throw this.#error('an operator (== != < <= > >= && ||) or the end');
    return condition;
  }

  #binary(level: number): StepCondition {
    const operators = PRECEDENCE[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      this.#space();
      const found = operators.find(([text]) => this.#text.startsWith(text, this.#at));
      if (found === undefined) return left;
      this.#at += found[0].length;
      left = { kind: 'binary', operator: found[1], left, right: this.#binary(level + 1) };
    }
  }

  #unary(): StepCondition {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new ConditionError(`the condition is nested more than ${MAX_DEPTH} levels deep`);
    this.#space();
    const condition = this.#operand();
    this.#depth -= 1;
    return condition;
  }

  #operand(): StepCondition {
    if (this.#accept('!')) return { kind: 'not', operand: this.#unary() };
    if (this.#accept('(')) {
      const inner = this.#binary(0);
      this.#space();
      if (!this.#accept(')')) throw this.#error('a closing parenthesis');
      return inner;
    }
    const found = readReference(this.#text, this.#at);
    if (found !== undefined) {
      this.#at = found.end;
      return { kind: 'reference', reference: found.reference };
    }
    return { kind: 'literal', value: this.#literal() };
  }

  #literal(): Json {
    const quote = this.#text[this.#at];
    if (quote === '"' || quote === "'") return this.#quoted(quote);
    const number = /-?\d{1,15}(?:\.\d{1,15})?/y;
    number.lastIndex = this.#at;
    const digits = number.exec(this.#text)?.[0];
    if (digits !== undefined) {
      this.#at += digits.length;
      return Number(digits);
    }
    const word = [...LITERAL_WORDS.keys()].find((key) => this.#text.startsWith(key, this.#at));
    if (word === undefined || /[A-Za-z0-9_]/.test(this.#text[this.#at + word.length] ?? '')) {
      throw this.#error('a reference ($input, $prev, $steps.NAME), a number, a quoted text, true, false or null');
    }
    this.#at += word.length;
    return LITERAL_WORDS.get(word) ?? null;
  }

  #quoted(quote: string): string {
    let value = '';
    for (let at = this.#at + 1; at < this.#text.length; at += 1) {
      const character = this.#text[at] ?? '';
      if (character === quote) {
        this.#at = at + 1;
        return value;
      }
      if (character === '\\') at += 1;
      value += character === '\\' ? (this.#text[at] ?? '') : character;
    }
    throw this.#error('a closing quote');
  }

  #accept(text: string): boolean {
    // `!=` is not a negation.
    if (!this.#text.startsWith(text, this.#at) || (text === '!' && this.#text[this.#at + 1] === '=')) return false;
    this.#at += text.length;
    return true;
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1;
  }

  #error(expected: string): ConditionError {
    return new ConditionError(`expected ${expected} at character ${this.#at + 1}`);
  }
}

export function conditionReferences(condition: StepCondition): ValueReference[] {
  if (condition.kind === 'reference') return [condition.reference];
  if (condition.kind === 'not') return conditionReferences(condition.operand);
  if (condition.kind === 'literal') return [];
  return [...conditionReferences(condition.left), ...conditionReferences(condition.right)];
}

/** Whether the condition is met. false, 0, the empty text, null and a reference without a value count as false. */
export function conditionHolds(condition: StepCondition, bindings: StepBindings): boolean {
  return truthy(evaluate(condition, bindings));
}

function evaluate(condition: StepCondition, bindings: StepBindings): Json {
  if (condition.kind === 'literal') return condition.value;
  if (condition.kind === 'reference') return resolveReference(condition.reference, bindings) ?? null;
  if (condition.kind === 'not') return !truthy(evaluate(condition.operand, bindings));
  return evaluateBinary(condition.operator, condition.left, condition.right, bindings);
}

function evaluateBinary(operator: Operator, left: StepCondition, right: StepCondition, bindings: StepBindings): Json {
  const first = evaluate(left, bindings);
  if (operator === '&&') return truthy(first) ? evaluate(right, bindings) : first;
  if (operator === '||') return truthy(first) ? first : evaluate(right, bindings);
  const second = evaluate(right, bindings);
  if (operator === '==') return sameJson(first, second);
  if (operator === '!=') return !sameJson(first, second);
  return ordered(operator, first, second);
}

/** Compares numbers with numbers and texts with texts; any other comparison is false. */
function ordered(operator: '<' | '<=' | '>' | '>=', first: Json, second: Json): boolean {
  const comparable =
    (typeof first === 'number' && typeof second === 'number') ||
    (typeof first === 'string' && typeof second === 'string');
  if (!comparable) return false;
  if (operator === '<') return first < second;
  if (operator === '<=') return first <= second;
  return operator === '>' ? first > second : first >= second;
}

function truthy(value: Json): boolean {
  return Boolean(value) || isJsonObject(value);
}
