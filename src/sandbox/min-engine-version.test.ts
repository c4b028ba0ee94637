import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { locateEngine, requireSafeVersions } from './min-engine-version.ts';
import { runnerCommand } from './runner-command.ts';

function refuses(runtime: string, engine: string): boolean {
  try {
    requireSafeVersions(runtime, engine);
    return false;
  } catch (error) {
    return isTemperError(error, 'TEMPER_SANDBOX_UNAVAILABLE');
  }
}

describe('requireSafeVersions', () => {
  it('older and invalid versions are refused', () => {
    assert.ok(refuses('26.10.0', '7.0.0'));
    assert.ok(refuses('26.10.0', '6.2.0'));
    assert.ok(refuses('25.99.99', '7.0.1'));
    assert.ok(refuses('26.10.0', '7.0.1-rc.1'));
    assert.ok(refuses('26.10.0', ''));
    assert.ok(refuses('v26.10.0', '7.0.1'));
  });

  it('equal and newer versions are accepted', () => {
    assert.ok(!refuses('26.0.0', '7.0.1'));
    assert.ok(!refuses('28.1.0', '10.0.0'));
    assert.ok(!refuses('26.10.0', '7.1.0'));
  });

  it('the installed engine is found and new enough', () => {
    requireSafeVersions(process.versions.node, locateEngine().version);
  });
});

describe('planLaunch', () => {
  const engine = { entry: '/x/isolated-vm/isolated-vm.js', version: '7.0.1', folders: ['/x/isolated-vm'] };

  it('a runner may read and load the engine only', () => {
    const { args } = runnerCommand('/node', engine, () => false);
    const rights = args.filter((arg) => arg.startsWith('--allow'));
    assert.deepEqual(rights, [
      '--allow-addons',
      '--allow-fs-read=/x/isolated-vm/*',
      '--allow-fs-read=/etc/alpine-release',
    ]);
    assert.ok(args.includes('--permission') && args.includes('--no-node-snapshot'));
  });

  it('the shell receives paths as arguments, never as text to interpret', () => {
    const plan = runnerCommand('/opt/$(touch x)/node', engine, (path) => path === '/bin/sh');
    assert.equal(plan.command, '/bin/sh');
    assert.ok(!plan.args[1]?.includes('touch'));
    assert.equal(plan.args[2], '/opt/$(touch x)/node');
  });

  it('the launcher beside Node starts a runner, also where a shell exists', () => {
    const plan = runnerCommand('/usr/local/bin/node', engine, () => true);
    assert.deepEqual(
      [plan.command, ...plan.args.slice(0, 2)],
      ['/usr/local/bin/temper-launcher', 'runner', '/usr/local/bin/node'],
    );
  });
});
