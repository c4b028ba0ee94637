import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatewayConfig } from './config.ts';

const REQUIRED = {
  tls: { certificate: '/tls.crt', key: '/tls.key' },
  nats: { servers: ['tls://nats:4222'], seedFile: '/gateway.nk' },
  deliveryTokenKeys: ['/key', '/other.key'],
};

describe('the configuration of the gateway', () => {
  it('the number of connections has a default, and a number that cannot be meant is refused with its field', () => {
    assert.equal(gatewayConfig(REQUIRED).maxConnections, 2_500);
    assert.equal(gatewayConfig({ ...REQUIRED, maxConnections: 20_000 }).maxConnections, 20_000);
    for (const maxConnections of [0, -1, 1.5, '4000', 1e9]) {
      assert.throws(() => gatewayConfig({ ...REQUIRED, maxConnections }), {
        code: 'TEMPER_CONFIGURATION_INVALID',
        message: /\/maxConnections/,
      });
    }
  });
});
