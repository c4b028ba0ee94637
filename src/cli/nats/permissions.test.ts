import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { MAX_CONSUMERS } from '../../nats/jetstream/names.ts';
import { gatewayPermissions, operatorPermissions } from '../../nats/server/permissions.ts';
import { serverConfig } from '../../nats/server/server-config.ts';
import type { CliIo } from '../io.ts';
import { natsPermissions, type NatsPermissionsOptions } from './permissions.ts';

const KEYS = { operatorKey: `U${'A'.repeat(55)}`, gatewayKey: `U${'B'.repeat(55)}` };

function print(options: NatsPermissionsOptions): string {
  let text = '';
  const io = { out: (part: string) => (text += part) } as unknown as CliIo;
  assert.equal(natsPermissions(options, io), 0);
  return text;
}

describe('temper nats permissions', () => {
  it('the account in text form is the one of the generated server configuration', () => {
    const account = print({ ...KEYS, output: 'text' });
    const generated = serverConfig({
      users: [
        { name: 'operator', publicKey: KEYS.operatorKey },
        { name: 'gateway', publicKey: KEYS.gatewayKey },
      ],
      certificateFile: '/tls.crt',
      keyFile: '/tls.key',
      storeFolder: '/data',
      storeBytes: 1,
      serverName: 'n',
    });
    assert.ok(generated.includes(account.trimEnd()), account);
  });
  it('the account in JSON form has every subject of both users and its limits', () => {
    const parsed = JSON.parse(print({ ...KEYS, output: 'json' })) as {
      users: { name: string; publish: string[]; subscribe: string[] }[];
      jetstream: { max_consumers: number };
    };
    const [operator, gateway] = parsed.users;
    assert.deepEqual(operator?.publish, operatorPermissions.publish);
    assert.deepEqual(gateway?.publish, gatewayPermissions.publish);
    assert.deepEqual(gateway?.subscribe, ['_INBOX_gateway.>', 'temper.notify.>']);
    assert.equal(parsed.jetstream.max_consumers, MAX_CONSUMERS);
  });
  it('without keys the text form has a placeholder that no server accepts', () => {
    assert.match(print({ output: 'text' }), /nkey: "PUBLIC_NKEY_OF_operator"/);
  });
  it('a value that is no public nkey is refused', () => {
    const options: NatsPermissionsOptions = { operatorKey: 'SUAM', output: 'text' };
    assert.throws(
      () => print(options),
      (error) => isTemperError(error, 'TEMPER_USAGE'),
    );
  });
});
