import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gatewayConfig } from '../../../src/gateway/config.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { GatewayFixture } from '../../support/gateway/gateway-fixture.ts';
import { startGatewayProcess } from '../../support/gateway/gateway-process.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { panelKills } from './suites/panel-kills.ts';
import { parkedCallTests } from './suites/parked-calls.ts';
import { reportKills } from './suites/report-kills.ts';

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));

describe('temper serve gateway', () => {
  let fixture: GatewayFixture;

  before(async () => {
    fixture = await GatewayFixture.open(['team-a']);
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  it('SIGTERM ends long polls, then the process', async () => {
    const { token, uid } = await fixture.createRunningAgent('team-a', 'scout');
    await using gateway = await startGatewayProcess(fixture, { namespaces: ['team-a'] });
    const longPoll = gateway.call('POST', '/v1/messages/next', { token, body: { waitSeconds: 60 } });
    await poll('a long poll at the inbox', () => fixture.nats.hasSubscription(`temper.notify.${uid}`));
    const [answer, code] = await Promise.all([longPoll, gateway.end('SIGTERM')]);
    assert.equal(answer.status, 204);
    assert.equal(code, 0, gateway.output);
    assert.ok(!gateway.output.includes(token));
  });

  parkedCallTests(() => fixture);
  panelKills(() => fixture);
  reportKills(() => fixture);

  const INVALID_CONFIGS: Record<string, [field: object, pattern: RegExp]> = {
    'no delivery token key': [{ deliveryTokenKeys: [] }, /\/deliveryTokenKeys/],
    'a provider of no type': [
      {
        models: {
          providers: [
            { name: 'a', type: 'openai' },
            { name: 'b', type: 'closed' },
          ],
        },
      },
      /models: providers\[1\]\.type must be one of/,
    ],
    'a key in the environment': [
      { models: { providers: [{ name: 'a', type: 'openai', keyEnvironment: 'KEY' }] } },
      /models: providers\[0\]\.keyEnvironment/,
    ],
  };
  it('a configuration error names the field', async () => {
    for (const [what, [field, pattern]] of Object.entries(INVALID_CONFIGS)) {
      const wrong = { ...fixture.replicaConfig(), ...field };
      assert.throws(
        () => gatewayConfig(wrong),
        (error) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID') && pattern.test(error.message),
        what,
      );
    }
  });

  it('the process exits with the field and the code of a configuration error', async () => {
    const file = join(fixture.folder, 'wrong.yaml');
    await writeFile(file, JSON.stringify({ ...fixture.replicaConfig(), deliveryTokenKeys: [] }));
    const child = spawn(TEMPER, ['serve', 'gateway', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.equal(code, 1);
    assert.match(output, /TEMPER_CONFIGURATION_INVALID/);
    assert.match(output, /\/deliveryTokenKeys/);
  });

  it('a replaced certificate is served without a restart', async () => {
    const names = ['certificate.pem', 'key.pem'];
    const tls = new URL('../../fixtures/tls/', import.meta.url);
    const [certificate = '', key = ''] = names.map((name) => join(fixture.folder, name));
    for (const name of names) await copyFile(new URL(name, tls), join(fixture.folder, name));
    const replica = await fixture.startReplica({ tls: { certificate, key } });
    const { connect } = await import('node:tls');
    const fingerprint = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: replica.port, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256);
          socket.destroy();
        });
        socket.on('error', reject);
      });
    const before = await fingerprint();
    await copyFile(fixture.nats.caFile, certificate);
    await copyFile(fixture.nats.caFile.replace('tls.crt', 'tls.key'), key);
    await pollValue(
      'the replaced certificate',
      () => fingerprint(),
      (value) => value !== before,
    );
  });

  it('SIGTERM ends the process while a NATS server that counts as connected does not answer', async () => {
    await using gateway = await startGatewayProcess(fixture, { namespaces: ['team-a'] });
    fixture.nats.server.pause();
    try {
      assert.equal(await gateway.end('SIGTERM'), 0, gateway.output);
    } finally {
      fixture.nats.server.resume();
    }
  });
});
