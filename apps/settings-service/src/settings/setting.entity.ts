import { Check, Column, Entity, PrimaryColumn } from 'typeorm';
import type { Revision } from '@platform/service-defaults';
import type { JsonText } from './setting-value';

/** The current value of a setting. A deleted setting has no row. */
@Entity('setting')
@Check('setting_value_is_json', 'value_text::json IS NOT NULL')
export class Setting {
  /** The subsystem's case-folded name. Collation "C" sorts by bytes, whatever the database's locale. */
  @PrimaryColumn({
    name: 'subsystem_key',
    type: 'text',
    collation: 'C',
    primaryKeyConstraintName: 'setting_pkey',
  })
  subsystemKey!: string;

  @PrimaryColumn({
    name: 'setting_key',
    type: 'text',
    collation: 'C',
    primaryKeyConstraintName: 'setting_pkey',
  })
  settingKey!: string;

  /** The name as the first write spelt it. */
  @Column({ name: 'subsystem_name', type: 'text' })
  subsystemName!: string;

  @Column({ name: 'setting_name', type: 'text' })
  settingName!: string;

  @Column({ name: 'value_text', type: 'text' })
  valueText!: JsonText;

  @Column({ type: 'bigint', default: () => 'settings.next_revision()' })
  revision!: Revision;
}

/** The columns that a response contains. */
export type StoredSetting = Pick<Setting, 'subsystemName' | 'settingName' | 'valueText'>;

export type CurrentSetting = StoredSetting & Pick<Setting, 'revision'>;

/**
 * One result of a read of many settings: null if the setting does not exist, no `valueText` if the value did
 * not fit into the response.
 */
export type FoundSetting =
  (Omit<CurrentSetting, 'valueText'> & { readonly valueText: JsonText | null }) | null;

/** The last setting of a page. */
export type ListPosition = Pick<Setting, 'subsystemKey' | 'settingKey'>;

export type ListedSetting = StoredSetting & ListPosition;
