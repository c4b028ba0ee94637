import type { Labels, Selector } from './types.ts';

/** Whether the labels match; an empty selector matches all. Throws for an operator the API does not have. */
export function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels = {}): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => holds(operator, labels[key], values))
  );
}

function holds(operator: string, label: string | undefined, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return label !== undefined && values.includes(label);
    case 'NotIn':
      return label === undefined || !values.includes(label);
    case 'Exists':
      return label !== undefined;
    case 'DoesNotExist':
      return label === undefined;
    default:
      throw new Error(`unknown label selector operator ${operator}`);
  }
}
