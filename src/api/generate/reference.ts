import { API_VERSION } from '../names.ts';
import type { KindSchemas } from '../v1alpha1/kinds.ts';
import { CONDITIONS } from '../v1alpha1/reasons.ts';
import type { CelRule, Definition } from './definitions.ts';
import type { Structural } from './structural.ts';

const NOTICE = '<!-- Made by make generate from src/api/v1alpha1; do not edit. -->';

/** The reference page of a kind. */
export function referencePage(definition: Definition, schemas: KindSchemas): string {
  const { kind, plural, shortName } = definition;
  const sections = [
    NOTICE,
    `# ${kind}`,
    schemas.summary,
    `\`apiVersion: ${API_VERSION}\` · \`kubectl get ${plural}\` or \`${shortName}\` · namespaced · sample: [manifests/samples](../../manifests/samples)`,
    '## spec',
    fieldTable('spec', schemas.spec as Structural),
    ...ruleSection(definition.rules),
    '## status',
    fieldTable('status', schemas.status as Structural),
    '## Conditions',
    ...conditionSections(kind),
  ];
  return `${sections.join('\n\n')}\n`;
}

interface Row {
  field: string;
  schema: Structural;
  required: boolean;
}

function fieldTable(name: string, schema: Structural): string {
  const rows = rowsOf(name, schema).map(({ field, schema: child, required }) =>
    [
      code(field),
      typeOf(child),
      required ? 'required' : defaultOf(child),
      rulesOf(child),
      cell(child['description']),
    ].join(' | '),
  );
  const head = ['| field | type | default | rule | meaning |', '|---|---|---|---|---|'];
  return [...head, ...rows.map((row) => `| ${row} |`)].join('\n');
}

/** Every field below a schema, depth first, in the order of the schema. Conditions are described in a section of their own. */
function rowsOf(path: string, schema: Structural): Row[] {
  const required = (schema['required'] ?? []) as string[];
  return Object.entries((schema['properties'] ?? {}) as Record<string, Structural>).flatMap(([name, child]): Row[] => {
    const field = `${path}.${name}`;
    const row = { field, schema: child, required: required.includes(name) };
    if (name === 'conditions') return [row];
    const items = child['items'] as Structural | undefined;
    return [row, ...rowsOf(items === undefined ? field : `${field}[]`, items ?? child)];
  });
}

function typeOf(schema: Structural): string {
  const items = schema['items'] as Structural | undefined;
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => code(String(value))).join(', ');
  if (schema['type'] === 'integer') return 'whole number';
  if (schema['type'] === 'boolean') return 'true or false';
  return schema['type'] === 'object' ? 'map' : 'text';
}

function defaultOf(schema: Structural): string {
  const value = schema['default'];
  if (value === undefined) return '';
  if (Array.isArray(value)) return code(`[${value.join(', ')}]`);
  return code(typeof value === 'string' && !/^[\d.]+$/.test(value) ? value : JSON.stringify(value));
}

function rulesOf(schema: Structural): string {
  const rules: string[] = [];
  const form = schema['x-temper-form'] ?? (schema['items'] as Structural | undefined)?.['x-temper-form'];
  if (typeof form === 'string') rules.push(cell(form));
  else if (typeof schema['pattern'] === 'string') rules.push(code(schema['pattern'].replaceAll('|', '\\|')));
  const bounds: [string, unknown, unknown][] = [
    ['', schema['minimum'], schema['maximum']],
    [' items', schema['minItems'], schema['maxItems']],
    [' characters', undefined, form === undefined ? schema['maxLength'] : undefined],
  ];
  for (const [unit, low, high] of bounds) {
    if (low !== undefined && high !== undefined) rules.push(`${number(low)} to ${number(high)}${unit}`);
    else if (high !== undefined) rules.push(`at most ${number(high)}${unit}`);
  }
  return rules.join('; ');
}

function ruleSection(rules: readonly CelRule[]): string[] {
  const shown = rules.map(
    ({ at, message }) => `- ${at.length === 0 ? 'object' : code(at.join('.').replace('.[]', '[]'))}: ${message}`,
  );
  return [
    '## Rules between fields',
    'An API server refuses what breaks these; `temper validate` names these and more.',
    shown.join('\n'),
  ];
}

function conditionSections(kind: keyof typeof CONDITIONS): string[] {
  return CONDITIONS[kind].flatMap(({ type, meaning, reasons }) => [
    `### ${type}`,
    meaning,
    [
      '| reason | meaning |',
      '|---|---|',
      ...Object.entries(reasons).map(([reason, text]) => `| ${code(reason)} | ${cell(text)} |`),
    ].join('\n'),
  ]);
}

function code(text: string): string {
  return `\`${text}\``;
}

function cell(text: unknown): string {
  return typeof text === 'string' ? text.replaceAll('|', '\\|').replaceAll('\n', ' ') : '';
}

function number(value: unknown): string {
  return value === Number.MAX_SAFE_INTEGER ? '2⁵³−1' : Number(value).toLocaleString('en-US');
}
