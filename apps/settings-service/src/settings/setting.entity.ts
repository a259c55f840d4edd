import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** The current value of a setting. A deleted setting has no row. */
@Entity('setting')
@Check('setting_value_is_json', 'value_text::json IS NOT NULL')
export class SettingEntity {
  /** Name in lower case; `subsystemName` has the name as it was first written. Collated "C": byte order, whatever the database's locale. */
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

  @Column({ name: 'subsystem_name', type: 'text' })
  subsystemName!: string;

  @Column({ name: 'setting_name', type: 'text' })
  settingName!: string;

  /** The JSON text as the caller sent it. */
  @Column({ name: 'value_text', type: 'text' })
  valueText!: string;

  /** Unique over all settings and never reused. */
  @Column({ name: 'revision', type: 'bigint', default: () => "nextval('settings.setting_revision')" })
  revision!: string;
}
