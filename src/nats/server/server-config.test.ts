import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { serverConfig, type ServerConfigOptions } from './server-config.ts';

const KEY = `U${'A'.repeat(55)}`;
const OPTIONS: ServerConfigOptions = {
  users: [
    { name: 'operator', publicKey: KEY },
    { name: 'gateway', publicKey: KEY },
  ],
  certificateFile: '/tls/tls.crt',
  keyFile: '/tls/tls.key',
  storeFolder: '/data',
  storeBytes: 1_024,
  serverName: 'temper-nats-0',
};

const CLUSTER = { port: 6_222, routes: ['nats-0.nats:6222', 'nats-1.nats:6222'], caFile: '/tls/ca.crt' };

describe('NATS server configuration', () => {
  it('the configuration has no anonymous user and no further listeners', () => {
    const text = serverConfig(OPTIONS);
    for (const word of ['no_auth_user', 'websocket', 'mqtt', 'leafnodes', 'password', 'gateway {', 'cluster']) {
      assert.ok(!text.includes(word), word);
    }
    assert.match(text, /^http: "127\.0\.0\.1:8222"$/m);
    assert.match(text, /^ {2}sync_interval: always$/m);
  });
  it('the servers of a cluster share a configuration, and a route needs a certificate with the name of a server', () => {
    const text = serverConfig({ ...OPTIONS, serverName: undefined, cluster: CLUSTER });
    assert.match(text, /^server_name: \$SERVER_NAME$/m);
    assert.match(text, /^ {2}routes: \["tls:\/\/nats-0\.nats:6222", "tls:\/\/nats-1\.nats:6222"\]$/m);
    assert.match(text, /^ {4}verify_cert_and_check_known_urls: true$/m);
    assert.match(text, /^http: "0\.0\.0\.0:8222"$/m);
    // A server that hangs is asked for a third of all reads until its routes end.
    assert.match(text, /^ {2}ping_interval: "5s"\n {2}ping_max: 2$/m);
  });
  it('only the operator may create streams, and no user may delete one or publish to server subjects', () => {
    const [, operator = '', gateway = ''] = serverConfig(OPTIONS).split(/^ {6}# /m);
    assert.match(operator, /STREAM\.CREATE\.temper-inbox/);
    assert.doesNotMatch(
      gateway,
      /STREAM\.(CREATE|UPDATE)|CONSUMER\.CREATE\.(temper-promotions\.(?!panel-reviews\.temper\.panel-reviews\.\*")|temper-wakeups)|temper\.>/,
    );
    for (const user of [operator, gateway]) {
      assert.doesNotMatch(user, /STREAM\.DELETE|RESTORE|SNAPSHOT|\$SYS|\$JS\.EVENT|"\$JS\.API\.>"|"_INBOX\.>"|"[>*]"/);
    }
  });
  it('a further user gets exactly the given permissions, and an empty list allows nothing', () => {
    const users = [
      ...OPTIONS.users,
      { name: 'crm', publicKey: KEY, permissions: { publish: [], subscribe: ['crm.>'] } },
    ];
    const crm = serverConfig({ ...OPTIONS, users }).split('# crm')[1] ?? '';
    assert.match(crm, /publish: \{ allow: \["_NOTHING"\] \}/);
    assert.match(crm, /subscribe: \{ allow: \["_INBOX_crm\.>", "crm\.>"\] \}/);
  });
  it('serverConfig rejects values that could inject configuration', () => {
    const user = (changes: object) => ({
      users: [{ name: 'crm', publicKey: KEY, permissions: { publish: [], subscribe: [] }, ...changes }],
    });
    const wrong: Partial<ServerConfigOptions>[] = [
      user({ name: 'a"b' }),
      user({ name: 'constructor', permissions: undefined }),
      user({ publicKey: `S${'A'.repeat(55)}` }),
      user({ publicKey: `${KEY}\n` }),
      user({ permissions: { publish: ['a" }'], subscribe: [] } }),
      user({ name: 'gateway' }),
      { certificateFile: '/tls/"\nno_auth_user: x' },
      { storeFolder: 'data' },
      { serverName: 'a b' },
      { storeBytes: 0 },
      { storeBytes: 1.5 },
      { port: Number.NaN },
      { host: 'x' },
      { cluster: { ...CLUSTER, routes: ['nats-0:6222"]'] } },
      { cluster: { ...CLUSTER, caFile: 'ca.crt' } },
      { cluster: { ...CLUSTER, port: 0 } },
    ];
    for (const changes of wrong) {
      assert.throws(
        () => serverConfig({ ...OPTIONS, ...changes }),
        (error) => isTemperError(error, 'TEMPER_USAGE'),
        JSON.stringify(changes),
      );
    }
  });
});
