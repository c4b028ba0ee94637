import type { AnyNode, Identifier, Program } from 'acorn';
import { childrenOf } from '../static/ast.ts';
import { applyEdits, type TextEdit } from './edits.ts';
import { countNames } from './entry.ts';

type NodeOf<T extends AnyNode['type']> = Extract<AnyNode, { type: T }>;

/**
 * Writes names with letters such as ö in ASCII, because the static check refuses names that may look like others: members
 * are quoted (`input["größe"]`), variables are renamed. A name that mixes alphabets stays, and is refused.
 */
export function asciiNames(source: string, program: Program): string | undefined {
  const renamer = new NameRewriter(source, new Set(countNames(program).keys()));
  const stack: AnyNode[] = [program];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    renamer.visit(node);
    stack.push(...childrenOf(node));
  }
  return renamer.edits.length === 0 ? undefined : applyEdits(source, renamer.edits);
}

class NameRewriter {
  readonly edits: TextEdit[] = [];
  readonly #source: string;
  readonly #taken: ReadonlySet<string>;
  readonly #renamed = new Map<string, string>();
  readonly #done = new Set<AnyNode>();

  constructor(source: string, taken: ReadonlySet<string>) {
    this.#source = source;
    this.#taken = taken;
  }

  visit(node: AnyNode): void {
    if (node.type === 'MemberExpression' && !node.computed) this.#member(node);
    else if (node.type === 'Property' && !node.computed) this.#property(node);
    else if (node.type === 'Identifier') this.#variable(node);
  }

  #member({ object, property, optional }: NodeOf<'MemberExpression'>): void {
    if (property.type !== 'Identifier' || !this.#isRewritable(property)) return;
    this.#done.add(property);
    this.edits.push({ start: object.end, end: property.end, text: `${optional ? '?.' : ''}[${quoted(property)}]` });
  }

  #property(node: NodeOf<'Property'>): void {
    const { key, value } = node;
    if (key.type !== 'Identifier' || !this.#isRewritable(key)) return;
    this.#done.add(key);
    if (!node.shorthand) {
      this.edits.push({ start: key.start, end: key.end, text: quoted(key) });
      return;
    }
    const local = value.type === 'AssignmentPattern' ? value.left : value;
    this.#done.add(local);
    this.edits.push({ start: key.start, end: key.end, text: `${quoted(key)}: ${this.#asciiName(key.name)}` });
  }

  #variable(node: Identifier): void {
    if (this.#done.has(node) || !this.#isRewritable(node)) return;
    this.edits.push({ start: node.start, end: node.end, text: this.#asciiName(node.name) });
  }

  /** Whether the name is of one alphabet, spelled without escapes and without letters that stand for others. */
  #isRewritable({ name, start, end }: Identifier): boolean {
    if (/^[\u0020-\u007e]*$/.test(name) || this.#source.slice(start, end) !== name) return false;
    const oneAlphabet = /^[\p{Script=Latin}\p{Nd}_$]+$/u.test(name) || !/[A-Za-z]/.test(name);
    return oneAlphabet && name.normalize('NFKC') === name;
  }

  #asciiName(name: string): string {
    const known = this.#renamed.get(name);
    if (known !== undefined) return known;
    const base = name.normalize('NFD').replaceAll(/[^A-Za-z0-9_$]/g, '') || 'name';
    let candidate = /^\d/.test(base) ? `_${base}` : base;
    while (this.#taken.has(candidate) || [...this.#renamed.values()].includes(candidate)) candidate += '_';
    this.#renamed.set(name, candidate);
    return candidate;
  }
}

function quoted({ name }: Identifier): string {
  return JSON.stringify(name);
}
