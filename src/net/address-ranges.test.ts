import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { addressRanges } from './address-ranges.ts';

describe('addressRanges', () => {
  it('addressRanges finds the addresses of all ranges, of both families, IPv4-mapped ones included', () => {
    const isIn = addressRanges(['34.118.224.0/20', '2600:1900::/28', '8.8.8.8/32']);
    for (const address of ['34.118.224.0', '34.118.239.255', '2600:1900::1', '2600:190f:ffff::', '8.8.8.8']) {
      assert.equal(isIn(address), true, address);
    }
    for (const address of ['::ffff:8.8.8.8', '::ffff:808:808']) assert.equal(isIn(address), true, address);
    for (const address of ['34.118.223.255', '34.118.240.0', '2600:1910::', '8.8.8.9', '::8.8.8.8', 'x', '']) {
      assert.equal(isIn(address), false, address);
    }
    assert.equal(addressRanges([])('8.8.8.8'), false);
  });

  it('addressRanges refuses what is not a range', () => {
    for (const range of ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', '10.0.0/8', 'example.com/8', '', '10.0.0.0/8/8']) {
      assert.throws(
        () => addressRanges([range]),
        (error) => isTemperError(error, 'TEMPER_CONFIGURATION_INVALID'),
        range,
      );
    }
  });
});
