import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { KIND_SCHEMAS } from '../v1alpha1/kinds.ts';
import { anyKindSchema, editorSchema, schemaFile } from './editor-schema.ts';

const SAMPLES = resolve(import.meta.dirname, '../../../manifests/samples');

function validator() {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    strictRequired: false,
    validateFormats: false,
    allowUnionTypes: true,
  });
  for (const schemas of KIND_SCHEMAS) ajv.addSchema(editorSchema(schemas), schemaFile(schemas.kind));
  return ajv.compile(anyKindSchema());
}

describe('the JSON Schemas for editors', () => {
  it('the schemas are strict JSON Schema and accept every sample manifest', async () => {
    const validate = validator();
    const files = await readdir(SAMPLES);
    assert.ok(files.length >= 10);
    for (const file of files) {
      const value: unknown = parse(await readFile(resolve(SAMPLES, file), 'utf8'));
      assert.ok(validate(value), `${file}: ${JSON.stringify(validate.errors)}`);
    }
  });

  it('the schemas refuse an unknown kind, an unknown field and a value outside an enum', async () => {
    const validate = validator();
    const agent = parse(await readFile(resolve(SAMPLES, 'agent-minimal.yaml'), 'utf8')) as { spec: object };
    assert.ok(!validate({ ...agent, kind: 'Agnet' }));
    assert.ok(!validate({ ...agent, spec: { ...agent.spec, grantz: {} } }));
    assert.ok(!validate({ ...agent, spec: { ...agent.spec, autonomy: 'semi' } }));
  });
});
