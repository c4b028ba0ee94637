import { stringify } from 'yaml';
import { GROUP, VERSION } from '../names.ts';
import type { KindSchemas } from '../v1alpha1/kinds.ts';
import type { CelRule, Column, Definition } from './definitions.ts';
import { type Structural, structural } from './structural.ts';

/** The CustomResourceDefinition of a kind as YAML. The same input gives the same text. */
export function crdText(definition: Definition, schemas: KindSchemas): string {
  const { kind, plural, shortName } = definition;
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['temper'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: rootSchema(definition, schemas) },
          subresources: { status: {} },
          additionalPrinterColumns: definition.columns.map(printerColumn),
          ...(definition.selectable.length === 0
            ? {}
            : { selectableFields: definition.selectable.map((jsonPath) => ({ jsonPath })) }),
        },
      ],
    },
  };
  const text = stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false });
  return `# Made by make generate from src/api/v1alpha1; do not edit.\n${text}`;
}

export function rootSchema(definition: Definition, { summary, spec, status }: KindSchemas): Structural {
  const root: Structural = {
    type: 'object',
    description: summary,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'The group and version of the object.' },
      kind: { type: 'string', description: 'The kind of the object.' },
      metadata: { type: 'object' },
      spec: { ...structural(spec, 'spec'), description: 'What is wanted.' },
      status: { ...structural(status, 'status'), description: 'What is. Written by the operator alone.' },
    },
  };
  for (const rule of definition.rules) addRule(root, rule);
  return root;
}

function addRule(root: Structural, { at, rule, message }: CelRule): void {
  let schema = root;
  for (const segment of at) {
    const next = segment === '[]' ? schema['items'] : (schema['properties'] as Structural | undefined)?.[segment];
    if (next === undefined) throw new TypeError(`no field ${at.join('.')} for the rule "${rule}"`);
    schema = next as Structural;
  }
  const rules = (schema['x-kubernetes-validations'] ?? []) as Structural[];
  schema['x-kubernetes-validations'] = [...rules, { rule, message }];
}

function printerColumn({ name, type, jsonPath, description, wide }: Column): Structural {
  return { name, type, jsonPath, description, ...(wide === true ? { priority: 1 } : {}) };
}
