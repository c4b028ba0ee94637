import { API_VERSION } from '../names.ts';
import { KIND_SCHEMAS, type KindSchemas } from '../v1alpha1/kinds.ts';
import { Metadata } from '../v1alpha1/metadata.ts';

/** A JSON Schema of draft 2020-12. */
type EditorSchema = { [keyword: string]: unknown };

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

/** The JSON Schema of a kind for editors, with every description and default. `temper validate` checks this and more. */
export function editorSchema({ kind, summary, spec, status }: KindSchemas): EditorSchema {
  return {
    $schema: DRAFT,
    title: kind,
    description: summary,
    type: 'object',
    properties: {
      apiVersion: { const: API_VERSION, description: 'The API group and version of the object.' },
      kind: { const: kind, description: 'The kind of the object.' },
      metadata: plainSchema(Metadata),
      spec: { ...plainSchema(spec), description: 'The desired state.' },
      status: { ...plainSchema(status), description: 'The observed state. Only the operator writes it.' },
    },
    required: ['apiVersion', 'kind', 'metadata', 'spec'],
    additionalProperties: false,
  };
}

/** The schema of a file with objects of any kind: the member `kind` selects the schema. */
export function anyKindSchema(): EditorSchema {
  return {
    $schema: DRAFT,
    title: 'Temper manifest',
    description: 'An object of any kind of Temper.',
    type: 'object',
    properties: { apiVersion: { const: API_VERSION }, kind: { enum: KIND_SCHEMAS.map(({ kind }) => kind) } },
    required: ['apiVersion', 'kind'],
    allOf: KIND_SCHEMAS.map(({ kind }) => ({
      if: { properties: { kind: { const: kind } }, required: ['kind'] },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { $ref: schemaFile(kind) },
    })),
  };
}

export function schemaFile(kind: string): string {
  return `${kind.toLowerCase()}.schema.json`;
}

export function schemaText(schema: EditorSchema): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** Removes the keywords that only Kubernetes or the generator reads. Members of `properties` are names, not keywords. */
function plainSchema(schema: object): EditorSchema {
  const result: EditorSchema = {};
  for (const [keyword, value] of Object.entries(schema)) {
    // Editors complete the names, and accept what has the form.
    if (keyword === 'x-temper-enum') result['anyOf'] = [{ enum: value }, { pattern: formOf(schema) }];
    else if (keyword.startsWith('x-')) continue;
    else if (keyword === 'properties' || keyword === 'patternProperties')
      result[keyword] = plainMembers(value as object);
    else result[keyword] = plainValue(value);
  }
  return result;
}

function formOf(schema: object): unknown {
  return Reflect.get(schema, 'x-temper-pattern');
}

function plainMembers(members: object): EditorSchema {
  return Object.fromEntries(Object.entries(members).map(([name, child]) => [name, plainSchema(child as object)]));
}

function plainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainValue);
  return typeof value === 'object' && value !== null ? plainSchema(value) : value;
}
