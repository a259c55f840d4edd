import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { eventually } from '@platform/testing';
import { runAdmin } from '../src/admin/administration';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('the operator’s command line', () => {
  let from: SettingsFixture;
  let to: SettingsFixture;
  let folder: string;

  beforeAll(async () => {
    [from, to] = [await startSettings(), await startSettings()];
    folder = mkdtempSync(join(tmpdir(), 'settings-admin-'));
  });
  afterAll(async () => {
    await from.close();
    await to.close();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    for (const { database } of [from, to])
      await database.query('TRUNCATE settings.setting, settings.setting_history');
  });

  const put = (service: SettingsFixture, subsystem: string, setting: string, text: string) =>
    service.api
      .put(settingPath(subsystem, setting))
      .set(PARTNER)
      .type('json')
      .send(`{"settingValue":${text}}`)
      .expect(200);
  const admin = async (service: SettingsFixture, args: string[], input = '') => {
    let [output, complaint] = ['', ''];
    const exitCode = await runAdmin(args, {
      env: service.environment,
      input: Readable.from([input]),
      output: new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          output += chunk.toString();
          done();
        },
      }),
      complain: (text) => (complaint += text),
    });
    return { exitCode, output, complaint };
  };
  const rowsOf = (service: SettingsFixture) =>
    service.database.query(
      'SELECT subsystem_key, setting_key, subsystem_name, setting_name, value_text FROM settings.setting ORDER BY 1, 2',
    );

  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

  /** Destroys the table's TOAST rows, which hold its large values, as a damaged disk could. */
  async function loseLargeValues({ database }: SettingsFixture, table: string): Promise<void> {
    await database.querySuperuser('CREATE EXTENSION IF NOT EXISTS pg_surgery');
    const [toast] = await database.query<{ name: string }>(
      'SELECT reltoastrelid::regclass::text AS name FROM pg_class WHERE oid = $1::regclass',
      [table],
    );
    const { name } = toast!;
    await database.querySuperuser(
      `SELECT heap_force_kill('${name}'::regclass, ARRAY(SELECT ctid FROM ${name}))`,
    );
  }

  it('exports and imports settings byte for byte', async () => {
    const values = [
      '1.0',
      '-0',
      '12345678901234567890.123',
      '{"b":1,\n  "a":"\\u0000 ü \\ud800"}',
      '"😀"',
      '[ ]',
    ];
    for (const [index, value] of values.entries()) await put(from, 'Größe', `V${String(index)}`, value);
    await put(from, 'Other', 'x', '"\u2028"');
    const exported = await admin(from, ['export']);
    expect([exported.exitCode, exported.complaint]).toEqual([0, '']);
    expect(exported.output.split('\n')).toHaveLength(values.length + 2);
    expect(exported.output.split('\n')[3]).toBe(
      JSON.stringify({ subsystemName: 'Größe', settingName: 'V3', valueText: values[3] }),
    );
    const imported = await admin(to, ['import', '--as', 'release 7'], exported.output);
    expect(imported).toMatchObject({ exitCode: 0 });
    expect(imported.output).toMatch(/\+ "Größe" "V0"\n[^]*\n7 created, 0 changed, 0 unchanged\n$/);
    expect(await rowsOf(to)).toEqual(await rowsOf(from));
    const history = await to.database.query(
      "SELECT DISTINCT person_name, persona, person_id, operation, request_id ~ '^[0-9a-f]{32}$' AS traced FROM settings.setting_history",
    );
    expect(history).toEqual([
      { person_name: 'release 7', persona: 0, person_id: null, operation: 'write', traced: true },
    ]);
    expect((await admin(to, ['compare'], exported.output)).output).toBe(
      '0 missing, 0 different, 0 here only, 7 same\n',
    );
  });

  it('exports and compares subsystems by name, also with files', async () => {
    await put(from, 'Billing', 'a', '1');
    await put(from, 'Billing', 'b', '2');
    await put(from, 'Mail', 'a', '1');
    const file = join(folder, 'billing.ndjson');
    expect((await admin(from, ['export', '--subsystem', 'BILLING', file])).exitCode).toBe(0);
    expect(readFileSync(file, 'utf8').split('\n').length).toBe(3);
    await put(to, 'billing', 'B', '3');
    await put(to, 'billing', 'c', '4');
    await put(to, 'Mail', 'z', '4');
    const compared = await admin(to, ['compare', file]);
    expect(compared).toEqual({
      exitCode: 1,
      output:
        '+ "Billing" "a"\n~ "Billing" "b"\n- "billing" "c"\n1 missing, 1 different, 1 here only, 0 same\n',
      complaint: '',
    });
    const both = await admin(to, [
      'compare',
      '--quiet',
      '--subsystem',
      'billing',
      '--subsystem',
      'mail',
      file,
    ]);
    expect(both.output).toBe('1 missing, 1 different, 2 here only, 0 same\n');
  });

  it('writes nothing in a dry run, and resumes an interrupted import', async () => {
    const lines = Array.from({ length: 250 }, (_, n) =>
      JSON.stringify({ subsystemName: 'Many', settingName: `n${String(n)}`, valueText: String(n) }),
    );
    const dry = await admin(to, ['import', '--dry-run', '--quiet'], lines.join('\n'));
    expect(dry).toEqual({ exitCode: 0, output: '250 to create, 0 to change, 0 unchanged\n', complaint: '' });
    expect(await rowsOf(to)).toEqual([]);
    const broken = await admin(to, ['import', '--quiet'], [...lines.slice(0, 230), 'oops'].join('\r\n'));
    expect(broken).toEqual({ exitCode: 1, output: '', complaint: 'settings:admin: line 231: not JSON\n' });
    expect(await rowsOf(to)).toHaveLength(200);
    const rest = await admin(to, ['import', '--quiet'], lines.join('\n'));
    expect(rest.output).toBe('50 created, 0 changed, 200 unchanged\n');
    const [count] = await to.database.query('SELECT count(*)::int AS entries FROM settings.setting_history');
    expect(count).toEqual({ entries: 250 });
  });

  const line = (changes: object) =>
    JSON.stringify({ subsystemName: 'S', settingName: 'n', valueText: '1', ...changes });
  it.each([
    ['no object', '1', 'line 1: not an object'],
    ['a bad name', line({ settingName: '..' }), 'line 1: settingName must have'],
    ['no value', line({ valueText: 1 }), 'line 1: valueText is required'],
    ['null', line({ valueText: 'null' }), 'line 1: valueText must not be null'],
    ['invalid JSON', line({ valueText: '{' }), 'line 1: valueText not valid JSON'],
    ['a lone surrogate', line({ valueText: '"\ud800"' }), 'line 1: valueText is not well-formed'],
    [
      'the same setting twice',
      `${line({})}\n${line({ settingName: 'N' })}`,
      'line 2: names the setting of line 1',
    ],
  ])('refuses %s and names the line', async (_case, input, complaint) => {
    const answer = await admin(to, ['import'], input);
    expect(answer).toMatchObject({
      exitCode: 1,
      complaint: expect.stringContaining(`settings:admin: ${complaint}`),
    });
    expect(await rowsOf(to)).toEqual([]);
  });

  it('prints help, and explains invalid arguments', async () => {
    for (const action of ['export', 'import', 'compare', 'restore'])
      expect(await admin(to, [action, '--help'])).toMatchObject({
        exitCode: 0,
        output: expect.stringContaining(`Usage: settings:admin ${action} `),
      });
    expect((await admin(to, [])).output).toContain('export');
    expect(await admin(to, ['export', '--dry-run'])).toMatchObject({ exitCode: 2 });
    expect(await admin(to, ['restore', 'Billing', 'yesterday'])).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining('must be an instant like'),
    });
    expect(await admin(to, ['import', join(folder, 'absent')])).toMatchObject({
      exitCode: 1,
      complaint: `settings:admin: ${join(folder, 'absent')}: ENOENT\n`,
    });
    const nowhere = { ...to, environment: { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' } };
    expect(await admin(nowhere, ['export'])).toMatchObject({
      exitCode: 1,
      complaint: expect.stringContaining('the database cannot be reached'),
    });
  });

  describe('a restoration', () => {
    const LONG_AGO = '2025-11-23T12:00:00Z';
    const anInstant = async (): Promise<string> => {
      const [row] = await from.database.query<{ now: Date }>('SELECT clock_timestamp() AS now');
      return new Date(row!.now.getTime() + 1).toISOString();
    };
    let at = '';
    beforeEach(async () => {
      for (const name of ['a', 'b', 'c']) await put(from, 'Billing', name, '1');
      at = await anInstant();
      await eventually(async () => expect((await anInstant()) > at).toBe(true));
      await put(from, 'Billing', 'a', '2');
      await put(from, 'Billing', 'd', '1');
    });

    it.each([
      ['a wrong year', ['billing', LONG_AGO]],
      ['a wrong name', ['biling', '2026-01-01T00:00:00Z']],
    ])('to %s changes nothing and ends with 1', async (_what, words) => {
      const before = await rowsOf(from);
      for (const further of [[], ['--yes'], ['--dry-run']])
        expect(await admin(from, ['restore', ...words, ...further])).toMatchObject({
          exitCode: 1,
          complaint: expect.stringContaining('there was no setting of'),
        });
      expect(await rowsOf(from)).toEqual(before);
    });

    it('to the future is refused as an invalid argument', async () => {
      const future = new Date(Date.now() + 60_000).toISOString();
      expect(await admin(from, ['restore', 'Billing', future, '--yes'])).toMatchObject({ exitCode: 2 });
    });

    it('shows the planned changes, and makes them only after confirmation', async () => {
      const before = await rowsOf(from);
      const unasked = await admin(from, ['restore', 'Billing', at]);
      expect(unasked).toEqual({
        exitCode: 1,
        output: '~ "Billing" "a"\n- "Billing" "d"\n1 to write, 1 to delete, 2 unchanged\n',
        complaint: expect.stringContaining('nothing was changed: pass --yes'),
      });
      const questions: string[] = [];
      const answering = (agrees: boolean) =>
        runAdmin(['restore', 'Billing', at], {
          env: from.environment,
          output: new Writable({ write: (_chunk, _encoding, done) => done() }),
          complain: () => undefined,
          ask: (question) => {
            questions.push(question);
            return Promise.resolve(agrees);
          },
        });
      expect(await answering(false)).toBe(1);
      expect(await rowsOf(from)).toEqual(before);
      expect(await answering(true)).toBe(0);
      expect(questions).toHaveLength(2);
      expect(await rowsOf(from)).toHaveLength(3);
      expect((await admin(from, ['restore', 'Billing', at])).exitCode).toBe(0);
      const emptied = await admin(from, ['restore', 'Billing', LONG_AGO, '--allow-empty', '--yes']);
      expect(emptied).toMatchObject({ exitCode: 0 });
      expect(await rowsOf(from)).toEqual([]);
    });

    it('skips and names settings that cannot be read or written, and exits with 1', async () => {
      const random = (seed: number): string =>
        JSON.stringify(
          Array.from({ length: 600 }, (_, n) => sha256(`${String(seed)} ${String(n)}`)).join(''),
        );
      await put(from, 'Billing', 'damaged', random(1));
      await from.database.query(
        `INSERT INTO settings.setting_history
           (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id)
         VALUES ('billing', 'not-json', 'Billing', 'Not-JSON', 'write', '{', 1, 1, 'r')`,
      );
      await loseLargeValues(from, 'settings.setting_history');
      at = await anInstant();
      await eventually(async () => expect((await anInstant()) > at).toBe(true));
      await put(from, 'Billing', 'damaged', random(2));
      for (const name of ['a', 'e', 'z']) await put(from, 'Billing', name, '3');
      const damaged =
        'settings:admin: "Billing" "damaged" is left as it is: missing chunk number 0 for toast value';
      const notJson =
        'settings:admin: "Billing" "Not-JSON" is left as it is: invalid input syntax for type json\n';

      const planned = await admin(from, ['restore', 'Billing', at, '--dry-run']);
      expect(planned).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(damaged) });
      expect(planned.output).toMatch(/\n2 to write, 2 to delete, 3 unchanged, 1 failed\n$/);

      const restored = await admin(from, ['restore', 'Billing', at, '--yes']);
      expect(restored.exitCode).toBe(1);
      expect(restored.output).toMatch(/\n1 written, 2 deleted, 3 unchanged, 2 failed\n$/);
      expect(restored.complaint.split('settings:admin: ')).toHaveLength(3);
      expect(restored.complaint).toContain(damaged);
      expect(restored.complaint).toContain(notJson);
      const rows = await rowsOf(from);
      expect(rows.map(({ setting_key }) => setting_key)).toEqual(['a', 'b', 'c', 'd', 'damaged']);
      expect(rows.map(({ value_text }) => value_text)).toEqual(['2', '1', '1', '1', random(2)]);
      // A second run changes nothing, and fails for the same settings.
      const again = await admin(from, ['restore', 'Billing', at, '--yes', '--quiet']);
      expect(again.exitCode).toBe(1);
      expect(again.output).toMatch(/\n0 written, 0 deleted, 6 unchanged, 2 failed\n$/);
    });

    it('finds a past setting behind thousands of names that did not exist at the instant', async () => {
      await from.database.query(
        `INSERT INTO settings.setting_history
           (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text, revision, persona, request_id, occurred_at)
         SELECT 'many', 'n' || lpad(n::text, 5, '0'), 'Many', 'N' || n, 'write', '1', 1, 1, 'r',
           CASE WHEN n < 6000 THEN timestamptz '2026-01-03Z' ELSE timestamptz '2026-01-01Z' END
         FROM generate_series(1, 6000) AS n`,
      );
      const found = await admin(from, ['restore', 'Many', '2026-01-02T00:00:00Z', '--dry-run', '--quiet']);
      expect(found).toEqual({
        exitCode: 0,
        output: '1 to write, 0 to delete, 5,999 unchanged\n',
        complaint: '',
      });
    });

    it('changes nothing if the plan cannot be written to the output', async () => {
      const before = await rowsOf(from);
      const complaints: string[] = [];
      const exitCode = await runAdmin(['restore', 'Billing', at, '--yes'], {
        env: from.environment,
        output: new Writable({
          write: (_chunk, _encoding, done) => done(Object.assign(new Error('gone'), { code: 'EPIPE' })),
        }),
        complain: (text) => void complaints.push(text),
      });
      expect([exitCode, complaints]).toEqual([1, ['settings:admin: the output cannot be written (EPIPE)\n']]);
      expect(await rowsOf(from)).toEqual(before);
    });
  });

  it('exports, compares and imports all but a setting that cannot be read, names it, and exits with 1', async () => {
    const large = (seed: string): string =>
      JSON.stringify(Array.from({ length: 600 }, (_, n) => sha256(`${seed} ${String(n)}`)).join(''));
    await from.database.query(
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       SELECT 'many', 'n' || lpad(n::text, 4, '0'), 'Many', 'N' || lpad(n::text, 4, '0'), n::text FROM generate_series(1, 2500) AS n`,
    );
    await put(from, 'Many', 'N1500', large('damaged'));
    await loseLargeValues(from, 'settings.setting');
    const damaged = 'settings:admin: "Many" "N1500" is left as it is: missing chunk number 0 for toast value';

    for (const words of [['export'], ['export', '--subsystem', 'many']]) {
      const exported = await admin(from, [...words, '--quiet']);
      expect(exported).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(damaged) });
      expect(exported.complaint.split('\n')).toHaveLength(2);
      expect(exported.output.trimEnd().split('\n')).toHaveLength(2_499);
    }
    const lines = ['1499', '1500', '1501'].map((n) =>
      JSON.stringify({ subsystemName: 'Many', settingName: `N${n}`, valueText: '7' }),
    );
    const compared = await admin(from, ['compare', '--quiet'], lines.join('\n'));
    expect(compared).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(damaged) });
    expect(compared.complaint.split('\n')).toHaveLength(2);
    expect(compared.output).toBe('0 missing, 2 different, 2,497 here only, 0 same\n');
    const imported = await admin(from, ['import', '--quiet'], lines.join('\n'));
    expect(imported).toMatchObject({ exitCode: 1, complaint: expect.stringContaining(damaged) });
    expect(imported.output).toBe('0 created, 2 changed, 0 unchanged\n');
  });

  it('exports many settings page by page', async () => {
    await from.database.query(
      `INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
       SELECT 'many', 'n' || n, 'Many', 'N' || n, n::text FROM generate_series(1, 10050) AS n`,
    );
    const file = join(folder, 'many.ndjson');
    const { exitCode, complaint } = await admin(from, ['export', file]);
    expect([exitCode, complaint]).toEqual([0, '10,000 settings\n']);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(10_050);
    writeFileSync(file, '');
  });
});
