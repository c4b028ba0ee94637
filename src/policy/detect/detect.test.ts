import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../lib/json.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { PolicyRequest, ToolCategory } from '../types.ts';
import { HARMLESS, SECRETS } from './detect.testing.ts';

function outcome(
  input: Json,
  category: ToolCategory = 'code_execution',
  change: Partial<Extract<PolicyRequest, { kind: 'Tool' }>> = {},
): string {
  const policy = { autonomy: 'Full' as const, level: { ceiling: 'elevated' } };
  const agent = { grants: { tools: ['*'], shell: ['*'], network: ['**'] } };
  const decider = createDecider(
    aSnapshot({ policy: { ...policy, egress: { allow: ['**'] } }, agent, level: 'elevated' }),
  );
  const { effect, rule } = decider.decide(aTool({ category, arguments: input, ...change }));
  return effect === 'Allow' ? 'Allow' : `${effect} ${rule}`;
}

describe('the credential detector', () => {
  it('the credential detector denies a call with a secret, in any tool and at any depth', () => {
    for (const secret of SECRETS) {
      assert.equal(outcome({ text: secret }), 'Deny detector.credential', secret.slice(0, 12));
      assert.equal(outcome({ a: [{ b: [secret] }] }, 'web'), 'Deny detector.credential', secret.slice(0, 12));
      assert.equal(outcome({ text: secret }, 'other', { forged: true }), 'Deny detector.credential');
    }
    assert.equal(outcome({ client_secret: 'whatever it is' }), 'Deny detector.credential');
    assert.equal(outcome({ [`AKIA${'Q7'.repeat(8)}`]: true }), 'Deny detector.credential');
  });

  it('the credential detector allows similar texts, and never repeats a secret', () => {
    for (const text of HARMLESS) assert.equal(outcome({ text }, 'web'), 'Allow', text);
    const secret = `ghp_${'a1B2'.repeat(9)}`;
    const decision = createDecider(aSnapshot()).explain(aTool({ arguments: { text: secret } }));
    assert.ok(!JSON.stringify(decision).includes(secret));
  });
});

describe('the path detector', () => {
  it('the path detector denies `..` in path arguments', () => {
    for (const path of ['../x', 'a/../../etc/passwd', 'a\\..\\b', '%2e%2e/x', 'a\0b']) {
      assert.equal(outcome({ path }, 'file_system'), 'Deny detector.path-traversal', path);
      assert.equal(outcome({ source: path }), 'Deny detector.path-traversal', path);
      assert.equal(outcome({ anything: path }, 'file_system'), 'Deny detector.path-traversal', path);
    }
  });

  it('the path detector ignores the texts of an edit', () => {
    const edits = [{ oldText: '../x', newText: 'a\\..\\b', expectedText: '..' }];
    assert.equal(outcome({ path: 'notes.md', edits }, 'file_system'), 'Allow');
  });

  it('the path detector ignores text arguments', () => {
    assert.equal(outcome({ path: 'notes.md', content: 'see ../README, or C:\\x' }, 'file_system'), 'Allow');
    assert.equal(outcome({ text: '../x' }), 'Allow');
  });
});

describe('detectors on arguments of forge_tool and of forged tools', () => {
  const draft = { code: 'update(x); set(y); // rm -r', testCases: [{ input: { path: '../x' } }] };

  it('arguments of forge_tool and forged tools are not scanned for commands and paths', () => {
    const forge = { enabled: true };
    const decider = createDecider(aSnapshot({ agent: { forge, grants: {} }, policy: { autonomy: 'Full' } }));
    const request = { category: 'code_execution', action: 'code:create', arguments: draft } as const;
    assert.equal(decider.decide(aTool({ ...request, name: 'forge_tool' })).effect, 'Allow');
    assert.equal(decider.decide(aTool({ ...request, name: 'normalize', forged: true })).effect, 'Allow');
  });

  it('the arguments of code_run are scanned for credentials alone, because its code reaches nothing', () => {
    const input = { path: '../x', code: 'truncate; update(x); set(y)' };
    assert.equal(outcome(input, 'code_execution', { name: 'code_run' }), 'Allow');
    assert.equal(
      outcome({ code: SECRETS[0] ?? '' }, 'code_execution', { name: 'code_run' }),
      'Deny detector.credential',
    );
  });

  it('arguments of forged tools are scanned for credentials, and drafts of forge_tool are left to the forge', () => {
    const agent = { forge: { enabled: true }, grants: {} };
    const decider = createDecider(aSnapshot({ agent, policy: { autonomy: 'Full' } }));
    const secret = { code: SECRETS[0] ?? '' };
    const request = { category: 'code_execution', action: 'code:create', arguments: secret } as const;
    assert.equal(decider.decide(aTool({ ...request, name: 'forge_tool' })).effect, 'Allow');
    assert.equal(outcome({ code: SECRETS[0] ?? '' }, 'code_execution', { forged: true }), 'Deny detector.credential');
  });
});

describe('the destructive detector', () => {
  const WRECKING = [
    'rm -rf /',
    'sudo /bin/rm -vfr build',
    'cd /; rm --recursive x',
    'find . -exec rm -r {} +',
    'dd if=/dev/zero of=/dev/sda',
    'mkfs.ext4 /dev/sda1',
    'git push origin main --force',
    'git push -f',
    'git push origin +main',
    'git reset --hard HEAD~3',
    'git clean -xdf',
    'DROP TABLE users',
    'select 1; drop database x',
    'TRUNCATE orders',
    'DELETE FROM orders',
    'update users set admin = true',
    'kubectl delete namespace x',
    'terraform destroy',
    'chmod -R 777 /',
  ];
  const BUILDING = [
    'rm file.txt',
    'git push origin main',
    'git reset HEAD file',
    'delete from orders where id = 1',
    'update users set admin = true where id = 1',
    'select dropped, deleted from tables_of_truth',
    'echo form -r',
    'kubectl get pods',
  ];

  it('the destructive detector escalates the deletion of a folder with its content', () => {
    const deletion = (input: Json): string => outcome(input, 'file_system', { action: 'code:delete' });
    assert.equal(deletion({ path: 'a', recursive: true }), 'Escalate detector.destructive');
    for (const harmless of [{ path: 'a' }, { path: 'a', recursive: true, dryRun: true }]) {
      assert.equal(deletion(harmless), 'Allow');
    }
  });

  it('the destructive detector escalates destructive commands', () => {
    for (const text of WRECKING) assert.equal(outcome({ text }, 'database'), 'Escalate detector.destructive', text);
    assert.equal(outcome({ command: 'rm', args: ['x'] }, 'terminal'), 'Allow');
    assert.equal(outcome({ command: 'rm -r x' }, 'terminal'), 'Escalate detector.destructive');
  });

  it('the destructive detector reads a command that is split into program and words, at any depth', () => {
    const split: Json[] = [
      { command: 'rm', args: ['-rf', '/'] },
      { command: 'rm', args: '-rf /' },
      { program: 'git', arguments: ['push', 'origin', '--force'] },
      { argv: ['rm', '-r', 'build'] },
      { steps: [{ run: { cmd: ['kubectl'], args: ['delete', 'namespace', 'x'] } }] },
      [['ls'], ['rm', '-r', 1]],
    ];
    for (const input of split) {
      assert.equal(outcome(input, 'deployment'), 'Escalate detector.destructive', JSON.stringify(input));
    }
    assert.equal(outcome({ command: 'rm', args: ['-rf', '/'] }, 'terminal'), 'Escalate detector.destructive');
    assert.equal(outcome({ command: 'git', args: ['push', 'origin', 'main'] }, 'terminal'), 'Allow');
  });

  it('the destructive detector allows ordinary commands, and text that is not a command', () => {
    for (const text of BUILDING) assert.equal(outcome({ text }, 'database'), 'Allow', text);
    assert.equal(outcome({ text: 'rm -rf /' }, 'file_system'), 'Allow');
    assert.equal(outcome({ text: 'rm -rf /' }, 'code_execution', { forged: true }), 'Allow');
  });
});

describe('the leak detector', () => {
  const addresses = Array.from({ length: 10 }, (_, index) => `user${index}@example.com`).join(', ');
  const LEAKS = [
    'card 4111 1111 1111 1111',
    '4111-1111-1111-1111',
    '378282246310005',
    '3782 822463 10005',
    'ssn 078-05-1120',
    addresses,
  ];

  it('the leak detector escalates calls that send personal data out', () => {
    for (const text of LEAKS) {
      assert.equal(outcome({ text }, 'web'), 'Escalate detector.data-leak', text);
      assert.equal(outcome({ text }, 'communication'), 'Escalate detector.data-leak', text);
      assert.equal(outcome({ text }, 'file_system'), 'Allow', text);
      const pushes = outcome({ text }, 'version_control', { action: 'vcs:push' });
      assert.equal(pushes, 'Escalate detector.data-leak', text);
      assert.equal(outcome({ text }, 'version_control', { action: 'vcs:commit' }), 'Allow', text);
    }
  });

  it('the leak detector ignores other numbers', () => {
    for (const text of ['4111 1111 1111 1112', '1763683200000', '1234 5678', '078-051-120', 'a@b.c'])
      assert.equal(outcome({ text }, 'web'), 'Allow', text);
  });
});

describe('detectors', () => {
  it('detectors scan large hostile texts in bounded time', () => {
    const size = 300_000;
    const texts = [
      'eyJ',
      '://',
      '@',
      'a@a',
      '-----BEGIN ',
      'Bearer ',
      '4111 ',
      'rm ',
      'git push ',
      'delete ',
      'sk-',
      '. ',
      '-- ',
    ];
    const input = texts.map((text) => text.repeat(size / text.length));
    const started = process.hrtime.bigint();
    for (const text of input) {
      outcome({ text }, 'web');
      outcome({ text }, 'database');
    }
    let deep: Json = 'x';
    for (let depth = 0; depth < 20_000; depth += 1) deep = [deep];
    assert.equal(outcome({ deep }), 'Allow');
    assert.ok(process.hrtime.bigint() - started < 60_000_000_000n, 'no scanner hangs');
  });
});
