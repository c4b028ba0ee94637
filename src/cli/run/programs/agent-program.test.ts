import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Agent } from '../../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../../api/v1alpha1/trustpolicy.ts';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { isTemperError } from '../../../lib/errors.ts';
import type { CliIo } from '../../io.ts';
import { withPrograms } from './agent-program.ts';

const POLICY = {} as TrustPolicy;
const AGENT = { spec: { model: { primary: 'default/default', agent: 'helper' } } } as Agent;

/** The program that the file of a user names, with `%` for the folder of the user. */
async function found(text: string | undefined, mode = 0o600) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'temper-programs-')));
  try {
    const [config, state] = [join(folder, 'config/temper'), join(folder, 'work/state')];
    for (const path of [config, state, join(folder, 'programs/a')]) await mkdir(path, { recursive: true });
    const file = join(config, 'agents.yaml');
    if (text !== undefined) await writeFile(file, text.replaceAll('%', folder), { mode });
    const io = { environment: { XDG_CONFIG_HOME: join(folder, 'config') }, cwd: folder } as unknown as CliIo;
    return { folder, program: (await withPrograms([{ agent: AGENT, policy: POLICY }], [state], io))[0]?.program };
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe('the file of agent programs', () => {
  it('a program has its folder, its arguments and its environment', async () => {
    const { folder, program } = await found(
      'agents: [{name: helper, folder: "%/programs", program: a/b.js, arguments: [--acp], environment: {MODE: quiet}}]',
    );
    assert.deepEqual(program, {
      name: 'helper',
      folder: join(folder, 'programs'),
      program: join(folder, 'programs/a/b.js'),
      arguments: ['--acp'],
      environment: { MODE: 'quiet' },
    });
  });

  for (const [text, code, message] of [
    [undefined, 'TEMPER_ACP_AGENT_NOT_FOUND', /has no agent of this name/],
    ['agents: []', 'TEMPER_ACP_AGENT_NOT_FOUND', /has no agent of this name/],
    ['agents: [{name: helper, folder: "%/none", program: a.js}]', 'TEMPER_ACP_AGENT_NOT_FOUND', /does not exist/],
    ['agents: [{name: helper, folder: "%/work", program: a.js}]', 'TEMPER_ACP_AGENT_NOT_FOUND', /must not read/],
    ['agents: [{name: helper, folder: "%", program: a.js}]', 'TEMPER_ACP_AGENT_NOT_FOUND', /must not read/],
    ['agents: 7', 'TEMPER_MANIFEST_INVALID', /agents must be a list/],
    ['agents: [', 'TEMPER_MANIFEST_INVALID', /agents\.yaml/],
    ['programs: []', 'TEMPER_MANIFEST_INVALID', /programs is not known here/],
    ['agents: [{name: Helper, folder: /a, program: a.js}]', 'TEMPER_MANIFEST_INVALID', /agents\[0\]\.name/],
    [
      'agents: [{name: helper, folder: a, program: a.js}]',
      'TEMPER_MANIFEST_INVALID',
      /folder must be an absolute path/,
    ],
    [
      'agents: [{name: helper, folder: /a, program: ../b.js}]',
      'TEMPER_MANIFEST_INVALID',
      /program must be in the folder/,
    ],
    [
      'agents: [{name: helper, folder: /a, program: a.js, environment: {NODE_OPTIONS: x}}]',
      'TEMPER_MANIFEST_INVALID',
      /environment\.NODE_OPTIONS is set by Temper/,
    ],
    [
      'agents: [{name: helper, folder: /a, program: a.js}, {name: helper, folder: /a, program: a.js}]',
      'TEMPER_MANIFEST_INVALID',
      /a second time/,
    ],
  ] as [string | undefined, ErrorCode, RegExp][]) {
    it(`a file is refused: ${text ?? 'none'}`, async () => {
      await assert.rejects(found(text), (error) => isTemperError(error, code) && message.test(error.message));
    });
  }

  it('a file that others can write is refused', async () => {
    const umask = process.umask(0);
    try {
      await assert.rejects(found('agents: []', 0o622), (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID'));
    } finally {
      process.umask(umask);
    }
  });
});
