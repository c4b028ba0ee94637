import { KIND_SCHEMAS } from '../v1alpha1/kinds.ts';
import { crdText } from './crd.ts';
import { DEFINITIONS } from './definitions.ts';
import { anyKindSchema, editorSchema, schemaFile, schemaText } from './editor-schema.ts';
import { errorsPage } from './errors-page.ts';
import { referencePage } from './reference.ts';

/** For editors: `# yaml-language-server: $schema=…`. */
const SCHEMA_FOLDER = 'docs/reference/schemas';

/** Every generated file: its path relative to the repository root, and its content. */
export function generatedFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const definition of DEFINITIONS) {
    const schemas = KIND_SCHEMAS.find(({ kind }) => kind === definition.kind);
    if (schemas === undefined) throw new TypeError(`no schemas of kind ${definition.kind}`);
    files.set(`crds/${definition.plural}.yaml`, crdText(definition, schemas));
    files.set(`docs/reference/${definition.kind.toLowerCase()}.md`, referencePage(definition, schemas));
  }
  for (const schemas of KIND_SCHEMAS) {
    files.set(`${SCHEMA_FOLDER}/${schemaFile(schemas.kind)}`, schemaText(editorSchema(schemas)));
  }
  files.set(`${SCHEMA_FOLDER}/temper.schema.json`, schemaText(anyKindSchema()));
  files.set('docs/reference/errors.md', errorsPage());
  return files;
}
