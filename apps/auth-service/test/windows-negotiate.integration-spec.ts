import { rename } from 'node:fs/promises';
import { eventually, permitFaults, runProcess, testsThatNeed } from '@platform/testing';
import { claimsOf } from './auth-fixture';
import { OTHER_REALM, REALM, whyNoKerberos } from './kerberos-realm';
import { AUTH_SERVICE, processEnvironment } from './replica-processes';
import { WindowsFixture, signIn } from './windows-fixture';
import type { Replica } from './windows-fixture';

const { describe: describeWithKerberos } = testsThatNeed(
  'Windows authentication against a real Kerberos realm',
  whyNoKerberos(),
);

describeWithKerberos('Windows authentication by Kerberos ticket', () => {
  let windows: WindowsFixture;
  let first: Replica;
  let second: Replica;

  beforeAll(async () => {
    windows = await WindowsFixture.start();
    const { realm, database, proxy } = windows;
    for (const user of ['Ivy.Windows', 'unmapped', 'host/pc', 'carl.customer']) await realm.addUser(user);
    await realm.addUser('Ivy.Windows', OTHER_REALM);
    await database.query(
      `UPDATE internal_legacy.internal_user SET windows_account_key = 'ivy.windows@${REALM}' WHERE user_id = 9001`,
    );
    first = await windows.startReplica('first', { databaseUrl: proxy.url });
    second = await windows.startReplica('second');
  }, 120_000);
  afterAll(() => windows?.stop());

  const outcomeOf = async (
    replica: Replica,
    authorization?: string,
  ): Promise<[number, number | undefined]> => {
    const { status, reason } = await signIn(replica, authorization);
    return [status, reason];
  };

  const authorizationOf = async (user: string): Promise<string> =>
    `Negotiate ${(await windows.realm.ticket(user)).ticket}`;

  const ticketRows = async (): Promise<number> => {
    const rows = await windows.database.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM auth.windows_ticket',
    );
    return rows[0]!.n;
  };

  it('requests a ticket', async () => {
    const { status, reason, headers } = await signIn(first);
    expect([status, reason]).toEqual([401, 1]);
    expect(headers.get('www-authenticate')).toBe('Negotiate');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('deprecation')).toMatch(/^@\d+$/);
    expect(headers.get('link')).toBe('</auth/token/sso/initiate>; rel="successor-version"');
  });

  it('issues tokens to the mapped internal user, and proves itself to the client', async () => {
    const { ticket, confirm } = await windows.realm.ticket('Ivy.Windows');
    const { status, headers, accessToken, refreshToken } = await signIn(first, `Negotiate ${ticket}`);
    expect(status).toBe(200);
    expect(claimsOf(accessToken)).toMatchObject({
      sub: 'userid:9001',
      personas: 1,
      client_id: 'demo-backend',
    });
    expect(refreshToken).not.toBeNull();
    const [, reply] = /^Negotiate (\S+)$/.exec(headers.get('www-authenticate') ?? '') ?? [];
    expect(await confirm(reply!)).toBe('confirmed');
    expect(headers.get('deprecation')).toMatch(/^@\d+$/);
  });

  it('accepts a ticket without SPNEGO too', async () => {
    const { ticket } = await windows.realm.ticket('Ivy.Windows', { mechanism: 'KRB5' });
    expect(await outcomeOf(first, `negotiate ${ticket}`)).toEqual([200, 0]);
  });

  it('accepts a ticket once, on any replica', async () => {
    const authorization = await authorizationOf('Ivy.Windows');
    expect(await outcomeOf(first, authorization)).toEqual([200, 0]);
    expect(await outcomeOf(first, authorization)).toEqual([401, 1]);
    expect(await outcomeOf(second, authorization)).toEqual([401, 1]);
  });

  it('recognises a used ticket however it is wrapped', async () => {
    const { ticket } = await windows.realm.ticket('Ivy.Windows');
    const wrapped = Buffer.from(ticket, 'base64');
    // The bare Kerberos token, from its tag and length. The first occurrence of the Kerberos OID is in
    // SPNEGO's list of mechanisms.
    const kerberos = Buffer.from('06092a864886f712010202', 'hex');
    const bare = wrapped.subarray(wrapped.indexOf(kerberos, wrapped.indexOf(kerberos) + 1) - 4);
    expect(await outcomeOf(first, `Negotiate ${bare.toString('base64')}`)).toEqual([200, 0]);
    expect(await outcomeOf(second, `Negotiate ${ticket}`)).toEqual([401, 1]);
  });

  it('accepts exactly one of many concurrent copies', async () => {
    const authorization = await authorizationOf('Ivy.Windows');
    const copies = Array.from({ length: 10 }, (_, n) =>
      outcomeOf(n % 2 === 0 ? first : second, authorization),
    );
    const statuses = (await Promise.all(copies)).map(([status]) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 401)).toHaveLength(9);
  });

  it.each<[string, string]>([
    ['the same name in another realm', `Ivy.Windows@${OTHER_REALM}`],
    ['an unmapped account', 'unmapped'],
    ['an account whose name happens to be a user name', 'carl.customer'],
    ['a host', 'host/pc'],
  ])('refuses a valid ticket of %s', async (_, user) => {
    const before = await ticketRows();
    expect(await outcomeOf(first, await authorizationOf(user))).toEqual([401, 1]);
    // Kerberos accepted the ticket: the mapping refused it.
    expect(await ticketRows()).toBe(before + 1);
  });

  it('refuses a disabled user', async () => {
    await windows.database.query(
      'UPDATE internal_legacy.internal_user SET disabled = true WHERE user_id = 9001',
    );
    expect(await outcomeOf(first, await authorizationOf('Ivy.Windows'))).toEqual([401, 1]);
    await windows.database.query(
      'UPDATE internal_legacy.internal_user SET disabled = false WHERE user_id = 9001',
    );
  });

  it('refuses an application that is unknown', async () => {
    const authorization = await authorizationOf('Ivy.Windows');
    const { status, reason } = await signIn(first, authorization, { 'x-application-key': 'nobody' });
    expect([status, reason]).toEqual([401, 8]);
  });

  it.each<[string, string]>([
    ['another scheme', 'Basic aXZ5OnB3'],
    ['invalid base64', 'Negotiate %%%'],
    ['NTLM', `Negotiate ${Buffer.from('NTLMSSP\0\x01\0\0\0\0\0\0\0', 'latin1').toString('base64')}`],
    ['zeros', `Negotiate ${Buffer.alloc(600).toString('base64')}`],
    ['too much', `Negotiate ${'A'.repeat(25 * 1024)}`],
  ])('refuses %s without recording a ticket', async (_, authorization) => {
    const before = await ticketRows();
    expect(await outcomeOf(first, authorization)).toEqual([401, 1]);
    expect(await ticketRows()).toBe(before);
  });

  it('refuses a ticket that was changed', async () => {
    const before = await ticketRows();
    const { ticket } = await windows.realm.ticket('Ivy.Windows');
    const bytes = Buffer.from(ticket, 'base64');
    for (const position of [bytes.length - 1, bytes.length - 300]) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(position) ^ 1, position);
      expect(await outcomeOf(second, `Negotiate ${changed.toString('base64')}`)).toEqual([401, 1]);
    }
    expect(await ticketRows()).toBe(before);
  });

  it('refuses an expired ticket', async () => {
    const strict = await windows.startReplica('strict', { clockSkewSeconds: 1 });
    try {
      const before = await ticketRows();
      const madeAtMs = performance.now();
      const { ticket } = await windows.realm.ticket('Ivy.Windows', { lifetime: '2s' });
      await eventually(() => expect(performance.now() - madeAtMs).toBeGreaterThan(4_500));
      expect(await outcomeOf(strict, `Negotiate ${ticket}`)).toEqual([401, 1]);
      expect(await ticketRows()).toBe(before);
    } finally {
      await strict.stop();
    }
  });

  it('returns 503 while the keytab is missing, and recovers', async () => {
    const authorization = await authorizationOf('Ivy.Windows');
    await rename(windows.realm.keytab, `${windows.realm.keytab}.away`);
    expect(await outcomeOf(first, authorization)).toEqual([503, undefined]);
    await rename(`${windows.realm.keytab}.away`, windows.realm.keytab);
    expect(await outcomeOf(first, authorization)).toEqual([200, 0]);
  });

  it('returns 503 while the database is down, and recovers', async () => {
    const ticket = await authorizationOf('Ivy.Windows');
    await windows.proxy.refuse();
    expect(await outcomeOf(first, ticket)).toEqual([503, undefined]);
    await windows.proxy.restore();
    await eventually(async () => {
      expect(await outcomeOf(first, await authorizationOf('Ivy.Windows'))).toEqual([200, 0]);
    });
  });

  it('does not start without its keytab, and says which setting is wrong', async () => {
    permitFaults();
    const env = await processEnvironment(windows.database.url, await windows.environment('keyless'));
    const running = await runProcess({
      entry: AUTH_SERVICE,
      env: { ...env, KRB5_KTNAME: '/nonexistent/keytab' },
    });
    expect(await running.exited).not.toBe(0);
    expect(running.output()).toContain('KRB5_KTNAME');
  });

  it('writes no ticket to its logs', () => {
    for (const replica of [first, second]) {
      expect(replica.output()).toContain('/auth/token/user/winauth');
      expect(replica.output()).not.toMatch(/YII|Negotiate /);
    }
  });
});
