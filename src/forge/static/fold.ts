import type { AnyNode, Expression, Super } from 'acorn';

const MAX_LENGTH = 200;
const MAX_STEPS = 200;

/** Evaluates constant text expressions: `'con' + 'structor'`, templates, constants, `fromCharCode`, `join`, `concat`. */
export function foldText(node: AnyNode, constants: ReadonlyMap<AnyNode, Expression>): string | undefined {
  let steps = 0;
  const fold = (inner: AnyNode | Super | null): string | undefined => {
    steps += 1;
    if (inner === null || steps > MAX_STEPS) return undefined;
    const text = foldOne(inner, fold, constants);
    return text === undefined || text.length > MAX_LENGTH ? undefined : text;
  };
  return fold(node);
}

type Fold = (node: AnyNode | Super | null) => string | undefined;

function foldOne(node: AnyNode | Super, fold: Fold, constants: ReadonlyMap<AnyNode, Expression>): string | undefined {
  if (node.type === 'Literal') return typeof node.value === 'bigint' ? undefined : foldLiteral(node.value);
  if (node.type === 'TemplateLiteral') return foldTemplate(node, fold);
  if (node.type === 'BinaryExpression')
    return node.operator === '+' ? joined([fold(node.left), fold(node.right)]) : undefined;
  if (node.type === 'SequenceExpression') return fold(node.expressions.at(-1) ?? null);
  if (node.type === 'Identifier') return fold(constants.get(node) ?? null);
  if (node.type === 'ArrayExpression') return node.elements.length === 1 ? fold(node.elements[0] ?? null) : undefined;
  return node.type === 'CallExpression' ? foldCall(node, fold) : undefined;
}

function foldLiteral(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function foldTemplate(node: Extract<AnyNode, { type: 'TemplateLiteral' }>, fold: Fold): string | undefined {
  const parts = node.quasis.flatMap((quasi, index) => {
    const expression = node.expressions[index];
    return expression === undefined ? [quasi.value.cooked ?? ''] : [quasi.value.cooked ?? '', fold(expression)];
  });
  return joined(parts);
}

function foldCall(node: Extract<AnyNode, { type: 'CallExpression' }>, fold: Fold): string | undefined {
  const { callee } = node;
  if (callee.type !== 'MemberExpression') return undefined;
  const method =
    callee.property.type === 'Identifier' && !callee.computed ? callee.property.name : fold(callee.property);
  const values = node.arguments.map((argument) => fold(argument));
  if (method === 'fromCharCode' || method === 'fromCodePoint') return joined(values.map(characterOf));
  if (method === 'concat') return joined([fold(callee.object), ...values]);
  if (method === 'join' && callee.object.type === 'ArrayExpression') {
    return joined(
      callee.object.elements.map((element) => fold(element)),
      values[0] ?? ',',
    );
  }
  return undefined;
}

function characterOf(code: string | undefined): string | undefined {
  return code !== undefined && /^\d{1,5}$/.test(code) ? String.fromCharCode(Number(code)) : undefined;
}

function joined(parts: readonly (string | undefined)[], separator = ''): string | undefined {
  return parts.includes(undefined) ? undefined : parts.join(separator);
}
