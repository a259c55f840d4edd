import { type Mutant, SETTINGS } from '../mutant.ts';
import { CALM, calm, one, oneAt } from '../rounds.ts';

/** Mutants of the settings service. */
export const SETTINGS_MUTANTS: readonly Mutant[] = [
  {
    name: 'acknowledged-before-commit',
    description: 'a PUT is acknowledged with the response of the previous one, before it is stored',
    promise: 'settings',
    bundle: SETTINGS,
    original: 'sendWritten(reply, await this.service.put(writeRequestOf(request), valueTextOf(request)));',
    mistake: `
      const written = this.service.put(writeRequestOf(request), valueTextOf(request));
      written.then((response) => (this.lastResponse = response), () => void 0);
      sendWritten(reply, this.lastResponse ?? (await written));`,
    rounds: oneAt('settings', 'kill-starved-replica'),
    masks: 'no PUT fails visibly',
    caughtBy: /settings: history.*: lost: /,
  },
  {
    name: 'history-has-wrong-value',
    description: 'one history row in seven has a value that was never written',
    promise: 'settings',
    aspect: 'history',
    bundle: SETTINGS,
    original: "SELECT w.*, 'write', ${AUDIT_COLUMNS}",
    mistake: `SELECT w.subsystem_key, w.setting_key, w.subsystem_name, w.setting_name,
      CASE WHEN w.revision % 7 = 0 THEN '"gone"' ELSE w.value_text END, w.revision, 'write', \${AUDIT_COLUMNS}`,
    rounds: CALM,
    caughtBy: /settings: history.*: never requested: gone/,
  },
  {
    name: 'history-row-missing',
    description: 'one write in seven has no history row',
    promise: 'settings',
    aspect: 'history',
    bundle: SETTINGS,
    original: `)
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, \${AUDIT_COLUMNS})
  SELECT w.*, 'write', \${AUDIT_COLUMNS}
    FROM written w JOIN request r ON r.subsystem_key = w.subsystem_key AND r.setting_key = w.setting_key
   ORDER BY w.subsystem_key, w.setting_key
  RETURNING subsystem_key AS "subsystemKey", setting_key AS "settingKey",
    subsystem_name AS "subsystemName", setting_name AS "settingName", revision`,
    mistake: `), recorded AS (
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, \${AUDIT_COLUMNS})
  SELECT w.*, 'write', \${AUDIT_COLUMNS}
    FROM written w JOIN request r ON r.subsystem_key = w.subsystem_key AND r.setting_key = w.setting_key
   WHERE w.revision % 7 <> 0)
  SELECT subsystem_key AS "subsystemKey", setting_key AS "settingKey",
    subsystem_name AS "subsystemName", setting_name AS "settingName", revision
    FROM written ORDER BY subsystem_key, setting_key`,
    rounds: CALM,
    caughtBy: /settings: history.*: lost: \d/,
  },
  {
    name: 'lost-update',
    description: 'one update in seven is in the history only',
    promise: 'settings',
    aspect: 'reads',
    bundle: SETTINGS,
    original: `DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, \${AUDIT_COLUMNS})
  SELECT w.*, 'write', \${AUDIT_COLUMNS}`,
    mistake: `DO UPDATE SET revision = excluded.revision,
        value_text = CASE WHEN excluded.revision % 7 = 0 THEN setting.value_text ELSE excluded.value_text END
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, \${AUDIT_COLUMNS})
  SELECT w.subsystem_key, w.setting_key, w.subsystem_name, w.setting_name, r.value_text, w.revision, 'write', \${AUDIT_COLUMNS}`,
    rounds: CALM,
    // The last write of a setting is lost only sometimes; a read before the next write always shows it.
    caughtBy: /current value is the last.*, last written \d|did not return the value acknowledged before it/,
  },
  {
    name: 'stale-read',
    description: 'a replica caches a setting for two seconds',
    promise: 'settings',
    aspect: 'reads',
    bundle: SETTINGS,
    original: 'await (at === void 0 ? this.batch.find(key) : this.findPast(key, at));',
    mistake: `
      await (async () => {
        const kept = (this.kept ??= new Map()).get(key.setting.key);
        if (kept !== void 0 && kept.until > Date.now()) return kept.found;
        const found = await this.batch.find(key);
        this.kept.set(key.setting.key, { found, until: Date.now() + 2e3 });
        return found;
      })();`,
    rounds: CALM,
    caughtBy: /did not return the value acknowledged before it/,
  },
  {
    name: 'repeated-put-writes-again',
    description: 'a PUT that is repeated with its Idempotency-Key writes again',
    promise: 'settings',
    aspect: 'repetitions',
    bundle: SETTINGS,
    original: 'if (trail.idempotencyKey === null) return trail;',
    mistake: 'return { ...trail, idempotencyKey: null };',
    rounds: CALM,
    caughtBy: /settings: history.*: twice: \d/,
  },
  {
    name: 'feed-omits-changes',
    description: 'the feed omits one change of settings in seven',
    promise: 'feeds',
    aspect: 'settings',
    bundle: SETTINGS,
    original: 'subsystemKey === null || change.subsystemKey === subsystemKey, "isShown"',
    mistake:
      'change.id % 7 !== 0 && (subsystemKey === null || change.subsystemKey === subsystemKey), "isShown"',
    rounds: CALM,
    masks: 'a reader cannot tell it from a missing history row',
    caughtBy: /feeds: a reader of settings .*: lost: /,
  },
  {
    name: 'feed-omits-late-commits',
    description: 'the feed omits a change that commits after one with a higher identifier',
    promise: 'feeds',
    aspect: 'settings',
    bundle: SETTINGS,
    original: 'for (let gap = upTo + 1; gap <= last; gap += 1) this.gaps.set(gap, nextXid);',
    mistake: '',
    rounds: CALM,
    masks: 'a reader cannot tell it from a missing history row',
    caughtBy: /feeds: a reader of settings .*: lost: /,
  },
  {
    name: 'feed-reversed',
    description: 'the feed lists the changes of a page in reverse order',
    promise: 'feeds',
    aspect: 'settings',
    bundle: SETTINGS,
    original: 'changes: page.changes.filter(isShown)',
    mistake: 'changes: page.changes.filter(isShown).toReversed()',
    rounds: CALM,
    caughtBy: /feeds: a reader of settings .*: order of /,
  },
  {
    name: 'no-retry-on-40001',
    description: 'a serialisation failure is not retried',
    promise: 'responses',
    aspect: 'retries',
    bundle: SETTINGS,
    original: 'if (!isSerializationFailure(error)) throw error;',
    mistake: 'throw error;',
    rounds: calm(3),
    clusterFaults: 'kill-replica',
    caughtBy: /PUT setting got 500 during (after )?calm/,
  },
  {
    name: '500-for-an-outage',
    description: 'a request gets 500 while the database is down',
    promise: 'responses',
    aspect: 'outages',
    bundle: SETTINGS,
    original: 'if (isConnectionError(error)) return unavailable("The database cannot be reached.");',
    mistake: '',
    rounds: one('database-kill'),
    clusterFaults: 'postmaster-kill',
    caughtBy: /got 500 during (database|postmaster)-kill/,
  },
  {
    name: 'ready-without-database',
    description: 'a replica is ready without its database',
    promise: 'recovery',
    bundle: SETTINGS,
    original:
      'await (isOwn ? assertSession(dataSource) : PoolDriver.of(dataSource).pool.queryAtOnce("SELECT 1"));',
    mistake: '',
    rounds: one('database-freeze'),
    caughtBy: /settings-. was ready without its database/,
  },
  {
    name: 'never-ready-again',
    description: 'a replica whose database was down once is never ready again',
    promise: 'recovery',
    bundle: SETTINGS,
    original:
      'await (isOwn ? assertSession(dataSource) : PoolDriver.of(dataSource).pool.queryAtOnce("SELECT 1"));',
    mistake: `
      if (dataSource.wasAway) throw new Error("the database was away");
      await assertSession(dataSource).catch((error) => {
        dataSource.wasAway = true;
        throw error;
      });`,
    rounds: one('database-kill'),
    masks: 'settings are neither written nor read after it',
    clusterFaults: 'postmaster-kill',
    caughtBy: /not ready 60.0 s after \S+ .*settings-/,
  },
  {
    name: 'ends-with-its-database',
    description: 'a replica exits when its database goes down',
    promise: 'recovery',
    bundle: SETTINGS,
    original: 'if (isConnectionError(error)) return unavailable("The database cannot be reached.");',
    mistake: 'if (isConnectionError(error)) process.exit(1);',
    rounds: one('database-kill'),
    masks: 'no replica exits in order',
    clusterFaults: 'postmaster-kill',
    caughtBy: /settings-. ended by itself during (database|postmaster)-kill/,
  },
];
