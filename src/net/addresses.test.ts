import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assert as check, ipV4, property } from 'fast-check';
import { isInternalHostname, isPrivateAddress, isPublicAddress } from './addresses.ts';

/** One or more addresses of each range that must not be reachable. */
const INNER = [
  '0.0.0.0',
  '0.255.255.255',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.9.9.9',
  '169.254.169.254',
  '169.254.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.0.170',
  '192.0.2.1',
  '192.168.0.1',
  '192.168.255.255',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.9',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  '::ffff:127.0.0.1',
  '::ffff:a9fe:a9fe',
  '::127.0.0.1',
  '::8.8.8.8',
  '64:ff9b::8.8.8.8',
  '::ffff:0:10.0.0.1',
  '3fff::1',
  '5f00::1',
];

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.215.14',
  '172.32.0.1',
  '100.128.0.1',
  '::ffff:8.8.8.8',
  '2606:4700::1111',
];

describe('isPublicAddress', () => {
  for (const address of INNER) {
    it(`isPublicAddress rejects ${address}`, () => assert.equal(isPublicAddress(address), false));
  }
  for (const address of PUBLIC) {
    it(`isPublicAddress accepts ${address}`, () => assert.equal(isPublicAddress(address), true));
  }

  it('isPublicAddress rejects every other notation of an address', () => {
    const forms = ['2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0x8.8.8.8', '08.8.8.8', '8.8.8.8.', ' 8.8.8.8'];
    for (const form of [
      ...forms,
      '8.8.8',
      '',
      'fe80::1%eth0',
      '2606:4700::1111%1',
      '[2606:4700::1111]',
      'example.com',
    ]) {
      assert.equal(isPublicAddress(form), false, form);
    }
  });

  it('isPublicAddress checks an IPv4-mapped IPv6 address as the IPv4 address', () => {
    check(
      property(ipV4(), (address) => {
        assert.equal(isPublicAddress(`::ffff:${address}`), isPublicAddress(address));
      }),
    );
  });
});

describe('isPrivateAddress', () => {
  it('isPrivateAddress accepts private networks only, and no other notation of their addresses', () => {
    for (const address of ['10.0.0.1', '192.168.1.1', '100.64.0.1', '127.0.0.1', 'fd00::1', '::1', '::ffff:10.0.0.1']) {
      assert.equal(isPrivateAddress(address), true, address);
    }
    for (const address of ['169.254.169.254', 'fe80::1', '8.8.8.8', '::10.0.0.1', 'fd00::10.0.0.1', 'fd00::1%eth0']) {
      assert.equal(isPrivateAddress(address), false, address);
    }
  });
});

describe('internal host names', () => {
  it('names of the machine, the cluster and metadata services are internal', () => {
    const inner = ['localhost', 'a.localhost', 'printer.local', 'kubernetes', 'kubernetes.default.svc', 'db.prod.svc'];
    for (const name of [...inner, 'db.prod.svc.cluster.local', 'metadata', 'metadata.google.internal', 'router.lan']) {
      assert.equal(isInternalHostname(name), true, name);
    }
  });

  it('public names are not internal, also when they resemble internal ones', () => {
    for (const name of ['example.com', 'localhost.example.com', 'local.example', 'svcx.example.com', 'internal.io']) {
      assert.equal(isInternalHostname(name), false, name);
    }
  });
});
