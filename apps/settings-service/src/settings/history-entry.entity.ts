import { Check, Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import type { Revision } from '@platform/service-defaults';
import type { SettingKey } from './setting-key';
import type { JsonText } from './setting-value';

/** One change of a setting, with its author. Entries are never changed or deleted. */
@Entity('setting_history')
@Check('setting_history_operation', "operation IN ('write', 'delete')")
@Index('setting_history_by_setting', ['subsystemKey', 'settingKey', 'historyId'])
@Index('setting_history_by_setting_time', ['subsystemKey', 'settingKey', 'occurredAt', 'historyId'])
@Index('setting_history_by_time', ['occurredAt', 'historyId'])
@Index('setting_history_by_subsystem', ['subsystemKey', 'occurredAt', 'historyId'])
@Index('setting_history_by_person', ['personId', 'occurredAt', 'historyId'], {
  where: 'person_id IS NOT NULL',
})
@Index('setting_history_by_user', ['userId', 'occurredAt', 'historyId'], { where: 'user_id IS NOT NULL' })
@Index('setting_history_idempotency', ['idempotencyDigest'], {
  unique: true,
  where: 'idempotency_digest IS NOT NULL',
})
export class HistoryEntry {
  /** For one setting, ascends in commit order. */
  @PrimaryGeneratedColumn('identity', {
    name: 'history_id',
    type: 'bigint',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'setting_history_pkey',
  })
  historyId!: string;

  @Column({ name: 'subsystem_key', type: 'text', collation: 'C' })
  subsystemKey!: string;

  @Column({ name: 'setting_key', type: 'text', collation: 'C' })
  settingKey!: string;

  @Column({ name: 'subsystem_name', type: 'text' })
  subsystemName!: string;

  @Column({ name: 'setting_name', type: 'text' })
  settingName!: string;

  @Column({ type: 'text' })
  operation!: 'write' | 'delete';

  /** The value that was written or deleted. */
  @Column({ name: 'value_text', type: 'text' })
  valueText!: JsonText;

  @Column({ type: 'bigint' })
  revision!: Revision;

  @Column({ name: 'person_id', type: 'bigint', nullable: true })
  personId!: string | null;

  @Column({ name: 'user_id', type: 'bigint', nullable: true })
  userId!: string | null;

  @Column({ name: 'person_name', type: 'text', nullable: true })
  personName!: string | null;

  /** All persona bits of the caller's token. */
  @Column({ type: 'smallint' })
  persona!: number;

  @Column({ name: 'request_id', type: 'text' })
  requestId!: string;

  /** Digest of the caller and the Idempotency-Key; null if the request had no key. */
  @Column({ name: 'idempotency_digest', type: 'bytea', nullable: true })
  idempotencyDigest!: Buffer | null;

  /** Hash of the request's content; null without an idempotency key, and in entries of release 1.0.0. */
  @Column({ name: 'idempotency_fingerprint', type: 'bytea', nullable: true })
  idempotencyFingerprint!: Buffer | null;

  /** The same instant for all entries of one transaction. */
  @Column({ name: 'occurred_at', type: 'timestamptz', default: () => 'settings.transaction_instant()' })
  occurredAt!: Date;
}

/** The result of a write, with everything needed to respond to the same request again. */
export type RecordedWrite = Pick<
  HistoryEntry,
  'subsystemKey' | 'settingKey' | 'subsystemName' | 'settingName' | 'valueText' | 'operation' | 'revision'
>;

/** A write of an earlier request, with the fingerprint of that request. */
export type EarlierWrite = RecordedWrite & Pick<HistoryEntry, 'idempotencyFingerprint'>;

/** The columns of an entry in the history of one setting. */
export type ListedEntry = Pick<
  HistoryEntry,
  | 'historyId'
  | 'operation'
  | 'valueText'
  | 'personId'
  | 'userId'
  | 'personName'
  | 'persona'
  | 'occurredAt'
  | 'requestId'
>;

/** The columns of an entry in the history of all settings. */
export type NamedEntry = ListedEntry & Pick<HistoryEntry, 'subsystemName' | 'settingName'>;

export function isWriteOf(
  write: Pick<RecordedWrite, 'subsystemKey' | 'settingKey'>,
  { subsystem, setting }: SettingKey,
): boolean {
  return write.settingKey === setting.key && write.subsystemKey === subsystem.key;
}
