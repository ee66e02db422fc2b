/** All settings of a config as a form, made from the JSON Schema of its family. */
import { useState } from 'preact/hooks';
import { isRecord } from '../../../base/values.js';
import { escapeText } from '../../../config/quote.js';
import type { DescribedModel } from '../../answers.js';
import type { ExploredModel } from '../../explorer-state.js';
import { type Field, fieldsOf, fieldValue } from '../../fields.js';
import { type Update, withValue, writtenValues } from '../model-edits.js';

interface Properties {
  readonly described: DescribedModel | undefined;
  readonly model: ExploredModel;
  readonly update: Update;
}

/** Sections of a document that have a form. */
const SECTIONS = ['model', 'training'] as const;

export function FormPanel({ described, model, update }: Properties) {
  // The form has a hundred inputs, which are made when somebody looks at them.
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="panel">
      <details class="form" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>All settings{described ? ` of ${described.family}` : ''}</summary>
        {isOpen && described && (
          <SettingsForm described={described} model={model} update={update} />
        )}
      </details>
    </section>
  );
}

function SettingsForm({ described, model, update }: Properties & { described: DescribedModel }) {
  return (
    <>
      {SECTIONS.map((section) => {
        const fields = fieldsOf(described.schema, section);
        const written = writtenValues(model.text, section);
        const effective = described.document[section];
        if (fields.length === 0) return null;
        return (
          <fieldset key={section} disabled={written === undefined}>
            <legend>{section}</legend>
            {fields.map((field) => (
              <FieldInput
                key={field.key}
                field={field}
                written={written?.[field.key]}
                effective={isRecord(effective) ? effective[field.key] : undefined}
                set={(value) =>
                  update(
                    (state) => withValue(state, section, field.key, value),
                    `${section}.${field.key}`,
                  )
                }
              />
            ))}
          </fieldset>
        );
      })}
    </>
  );
}

interface FieldProperties {
  readonly field: Field;
  /** The value in the text; undefined for a default. */
  readonly written: unknown;
  /** The value that counts. */
  readonly effective: unknown;
  /** Undefined removes the setting. */
  readonly set: (value: unknown) => void;
}

function FieldInput({ field, written, effective, set }: FieldProperties) {
  const { key, description, input } = field;
  const id = `field-${key}`;
  const isWritten = written !== undefined;
  const text = inputText(written);
  const usual = inputText(effective);
  return (
    <div class="field" data-written={isWritten}>
      <label for={id}>{key}</label>
      {input.kind === 'none' || (isWritten && typeof written === 'object' && written !== null) ? (
        <output id={id}>{escapeText(isWritten ? text : usual || 'default', 40)}</output>
      ) : input.kind === 'number' ? (
        <input
          id={id}
          type="number"
          step={input.isWhole ? 1 : 'any'}
          min={input.least}
          value={text}
          placeholder={usual}
          onInput={({ currentTarget }) => set(fieldValue(field, currentTarget.value) ?? undefined)}
        />
      ) : input.kind === 'text' ? (
        <input
          id={id}
          type="text"
          value={text}
          placeholder={usual}
          onInput={({ currentTarget }) => set(currentTarget.value || undefined)}
        />
      ) : (
        <select
          id={id}
          value={isWritten ? text : ''}
          onChange={({ currentTarget: { value } }) =>
            set(value === '' ? undefined : fieldValue(field, value))
          }
        >
          <option value="">{usual ? `default: ${usual}` : 'default'}</option>
          {choicesOf(input, text).map((choice) => (
            <option key={choice} value={choice}>
              {choice === '' ? '(empty)' : choice}
            </option>
          ))}
        </select>
      )}
      {description !== '' && <small>{description}</small>}
    </div>
  );
}

/** Choices with a written value that is not one of them. */
function choicesOf(input: Field['input'], text: string): readonly string[] {
  const choices = input.kind === 'choice' ? input.choices : ['true', 'false'];
  return text === '' || choices.includes(text) ? choices : [...choices, text];
}

const inputText = (value: unknown): string =>
  value === undefined || value === null
    ? ''
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);
