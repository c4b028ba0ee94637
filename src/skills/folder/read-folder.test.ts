import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createManifestLoader } from '../../api/manifests.ts';
import type { Json } from '../../lib/json.ts';
import { readSkillFolder } from './read-folder.ts';

const manifests = createManifestLoader();
const OPTIONS = { check: (object: Json) => manifests.validate(object), reserved: new Set(['finish']) };

const SKILL = `---
name: release-notes
description: >
  Writes the notes
  of a release.
license: Apache-2.0
compatibility: needs git
version: 2
metadata: {author: team, level: 3}
allowed-tools: Bash(git:*) Read
colour: blue
---

# Release notes

Read references/style.md first.
`;

const CAPABILITY = `id: tool:my-search
kind: tool
name: my-search
displayName: My Search
description: >
  Searches the
  knowledge base.
category: web
tags: [search, internal]
requiredSecrets: [MY_SEARCH_API_KEY]
requiredTools: []
available: true
edges:
  - {target: 'tool:web-search', type: SAME_CATEGORY, weight: 0.6}
schema:
  type: object
  properties: {query: {type: string}}
examples:
  - 'my_search({ query: "vacation" })'
  - {query: rent}
`;

describe('folders of skills', () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-skill-'));
  });
  after(() => rm(root, { recursive: true, force: true }));

  async function read(name: string, files: Record<string, string>) {
    const folder = join(root, name);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    return readSkillFolder(folder, OPTIONS);
  }

  it('SKILL.md is a skill, with the files beside it as resources, and each key without effect is named', async () => {
    const files = { 'SKILL.md': SKILL, 'references/style.md': 'Be brief.', 'scripts/run.js': '1', '.git/config': 'x' };
    const { capabilities, findings } = await read('release-notes', files);
    const annotations = {
      'temper.dev/skill-license': 'Apache-2.0',
      'temper.dev/skill-compatibility': 'needs git',
      'temper.dev/skill-version': '2',
      'temper.dev/skill-metadata': '{"author":"team","level":3}',
    };
    assert.deepEqual(capabilities, [
      {
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Capability',
        metadata: { name: 'release-notes', annotations },
        spec: {
          type: 'Skill',
          description: 'Writes the notes of a release.',
          content: '# Release notes\n\nRead references/style.md first.',
          resources: [
            { path: 'references/style.md', text: 'Be brief.' },
            { path: 'scripts/run.js', text: '1' },
          ],
        },
      },
    ]);
    assert.deepEqual(
      findings.map(({ level, message }) => `${level}: ${message}`),
      [
        'warning: allowed-tools grants nothing: permissions come from the policy and the Agent only',
        'warning: colour is not a key that Temper knows, and has no effect',
      ],
    );
  });

  it('CAPABILITY.yaml of a tool has its folded text, schema, examples and edges, and its text is a skill that needs it', async () => {
    const { capabilities, findings } = await read('my-search', {
      'CAPABILITY.yaml': CAPABILITY,
      'SKILL.md': '# Search\n\nSearch first.',
    });
    const [tool, guide] = capabilities;
    assert.deepEqual(tool?.spec, {
      type: 'Tool',
      displayName: 'My Search',
      description: 'Searches the knowledge base.',
      category: 'web',
      tags: ['search', 'internal'],
      requiredSecrets: ['my-search-api-key'],
      examples: ['my_search({ query: "vacation" })', '{"query":"rent"}'],
      edges: [{ type: 'SameCategory', target: 'tool:web-search', weight: '0.60' }],
      tool: {
        name: 'my-search',
        category: 'web',
        inputSchema: { type: 'object', properties: { query: { type: 'string' } } },
      },
    });
    assert.equal(guide?.metadata.name, 'my-search-guide');
    assert.equal(guide.spec.content, '# Search\n\nSearch first.');
    assert.deepEqual(guide.spec.edges, [{ type: 'DependsOn', target: 'tool:my-search', weight: '1.00' }]);
    assert.deepEqual(
      findings.map(({ message }) => message),
      [
        'requiredSecrets MY_SEARCH_API_KEY is read as connection my-search-api-key',
        'available is computed from requiredSecrets and requiredTools',
      ],
    );
  });

  it('CAPABILITY.yaml of a skill describes the SKILL.md beside it', async () => {
    const { capabilities, findings } = await read('both', {
      'CAPABILITY.yaml': 'id: skill:both\nkind: skill\nname: both\ndescription: Both.\ntags: [a]\n',
      'SKILL.md': '---\nname: both\nlicense: MIT\n---\nThe text.',
    });
    assert.deepEqual(findings, []);
    assert.deepEqual(capabilities[0]?.spec, { type: 'Skill', description: 'Both.', tags: ['a'], content: 'The text.' });
    assert.deepEqual(capabilities[0]?.metadata.annotations, { 'temper.dev/skill-license': 'MIT' });
  });

  it('a skill from elsewhere names its source', async () => {
    const { capabilities } = await read('pulled', {
      'SKILL.md': '---\nname: pulled\ndescription: d\n---\nt',
      '.temper-source.json': '{"source":"oci://registry.example.com/pulled:1"}',
    });
    assert.equal(capabilities[0]?.spec.source, 'oci://registry.example.com/pulled:1');
  });

  it('each kind is its type, and required members are named when they are missing', async () => {
    for (const kind of ['skill', 'extension', 'channel', 'voice', 'productivity']) {
      const text = `id: ${kind}:k-${kind}\nkind: ${kind}\nname: k-${kind}\ndescription: d\n`;
      const { capabilities, findings } = await read(`k-${kind}`, { 'CAPABILITY.yaml': text });
      assert.deepEqual([capabilities[0]?.spec.type.toLowerCase(), findings], [kind, []]);
    }
    const { findings } = await read('missing', { 'CAPABILITY.yaml': 'tags: [a]\n' });
    assert.deepEqual(
      findings.map(({ message }) => message),
      ['id is missing', 'kind is missing', 'name is missing', 'description is missing'],
    );
  });
});
