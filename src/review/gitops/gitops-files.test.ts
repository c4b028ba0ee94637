import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { parse } from 'yaml';
import { parseKnownHead } from '../../audit/known-head.ts';
import { createManifestLoader } from '../../api/manifests.ts';
import { aReview, aReviewedArtifact } from '../reviews.testing.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { gitOpsFiles } from './gitops-files.ts';
import { manifestText } from './manifest-text.ts';

function textOf(files: ReturnType<typeof gitOpsFiles>, name: string): string {
  return files.find(({ path }) => path.endsWith(`/${name}`))?.text ?? '';
}

function errorsOf(manifest: string): string[] {
  const problems = createManifestLoader().validate(parse(manifest) as Json);
  return problems.map(({ message }) => message);
}

describe('the files of a promotion in Git', () => {
  it('the tool and its Approval have the same digest, tier, namespace and nonce, and break no rule of their kinds', () => {
    const review = aReview();
    const files = gitOpsFiles(review);
    assert.deepEqual(
      files.map(({ path }) => path),
      ['emergenttool.yaml', 'approval.yaml', 'review.md', 'review.html', 'audit-head.jsonl'].map(
        (name) => `team-a/${review.object}/${name}`,
      ),
    );
    assert.deepEqual(parseKnownHead(textOf(files, 'audit-head.jsonl')), review.auditHead);
    const tool = parse(textOf(files, 'emergenttool.yaml')) as { metadata: JsonObject; spec: JsonObject };
    const approval = parse(textOf(files, 'approval.yaml')) as { metadata: JsonObject; spec: JsonObject };
    assert.deepEqual(tool.spec['artifact'], review.artifact);
    assert.deepEqual(approval.spec['subject'], {
      promotion: { tool: 'revenue_by_region', digest: tool.spec['digest'], tier: tool.spec['tier'] },
    });
    assert.equal(approval.spec['nonce'], tool.spec['requestNonce']);
    assert.equal(approval.metadata['namespace'], tool.metadata['namespace']);
    for (const name of ['emergenttool.yaml', 'approval.yaml']) {
      assert.deepEqual(errorsOf(textOf(files, name)), []);
    }
  });

  it('a revocation is an object of its own beside the approval, with the same subject and nonce', () => {
    const review = aReview();
    const revoked = { by: 'alice', reason: 'wrong\u202e unit' };
    const files = gitOpsFiles({ ...review, promotion: { ...review.promotion, revoked } });
    const approval = parse(textOf(files, 'approval.yaml')) as { metadata: JsonObject; spec: JsonObject };
    const revocation = parse(textOf(files, 'revocation.yaml')) as { metadata: JsonObject; spec: JsonObject };
    assert.equal(textOf(files, 'approval.yaml'), textOf(gitOpsFiles(review), 'approval.yaml'));
    assert.notEqual(revocation.metadata['name'], approval.metadata['name']);
    assert.deepEqual(revocation.spec, {
      ...approval.spec,
      decision: 'Revoke',
      reason: 'revoked by alice: wrong\\u{202e} unit',
    });
    assert.deepEqual(errorsOf(textOf(files, 'revocation.yaml')), []);
    assert.match(textOf(files, 'review.md'), /the approval is revoked; no agent can call the tool/);
  });

  it('a request with a new nonce gets an Approval with a new name', () => {
    const review = aReview();
    const again = { ...review, promotion: { ...review.promotion, nonce: 'another-nonce-0123456789' } };
    const [first, second] = [review, again].map(
      (of) => (parse(textOf(gitOpsFiles(of), 'approval.yaml')) as { metadata: JsonObject }).metadata['name'],
    );
    assert.notEqual(first, second);
  });

  it('a manifest is read as the same value by YAML 1.1 and YAML 1.2', () => {
    const texts = [
      'yes',
      'on',
      '1_000',
      '12:30:00',
      '0o17',
      '017',
      '~',
      '<<',
      '=',
      'null',
      '.inf',
      '2001-01-01',
      '',
      ' ',
    ];
    const text = fc.oneof(fc.constantFrom(...texts), fc.string({ unit: 'binary' }), linesOfText());
    fc.assert(
      fc.property(fc.array(text, { maxLength: 6 }), (values) => {
        const object = { spec: { list: values, item: values[0] ?? '' } };
        const written = manifestText(object);
        for (const version of ['1.1', '1.2'] as const) assert.deepEqual(parse(written, { version }), object);
      }),
      { seed: 1, numRuns: 40 },
    );
  });

  it('a source of plain lines is a block that shows its lines, and any other source is one quoted line', () => {
    const files = (source: string): string => {
      const artifact = aReviewedArtifact({ implementation: { mode: 'Sandbox', source } });
      const digest = digestOf(artifact as unknown as JsonObject);
      return textOf(gitOpsFiles(aReview({ artifact, digest })), 'emergenttool.yaml');
    };
    assert.match(
      files('function execute() {\n  return 1;\n}\n'),
      /source: \|\n {8}function execute\(\) \{\n {10}return 1;\n/,
    );
    assert.match(files('function execute() {\n  return "\u202e";\n}\n'), /source: "function execute.*\\u202e/);
    assert.match(files('function execute() { \n}\n'), /source: "function/);
  });
});

/** Lines with blanks at both ends, tabs and blank lines. */
function linesOfText(): fc.Arbitrary<string> {
  const line = fc.constantFrom(
    '',
    ' ',
    'a',
    ' a',
    'a ',
    '\ta',
    '- a',
    'a: b',
    '# a',
    '---',
    '...',
    '%',
    '|',
    "'",
    '"',
    '\\',
  );
  return fc.array(line, { maxLength: 5 }).map((lines) => lines.join('\n'));
}
