Feature: Settings as flags

  Background:
    Given a stable provider

  Scenario Outline: A setting is a flag of its type
    Given a <type>-flag with key "<key>" and a default value "<default>"
    When the flag was evaluated with details
    Then the resolved details value should be "<value>"
    And the flag key should be "<key>"
    And the reason should be "STATIC"
    And the error-code should be ""
    And the error message should be empty

    Examples:
      | key                | type    | default | value            |
      | boolean-flag       | Boolean | false   | true             |
      | boolean-zero-flag  | Boolean | true    | false            |
      | string-flag        | String  | other   | hi               |
      | string-zero-flag   | String  | other   |                  |
      | integer-flag       | Integer | 7       | 10               |
      | integer-zero-flag  | Integer | 7       | 0                |
      | huge-integer-flag  | Integer | 7       | 9007199254740991 |
      | float-flag         | Float   | 0.7     | 0.5              |

  Scenario: An object setting is a flag of type Object
    Given a Object-flag with key "object-flag" and a default value "{}"
    When the flag was evaluated with details
    Then the resolved object value should contain
      | key           | type    | value                 |
      | showImages    | Boolean | true                  |
      | title         | String  | Check out these pics! |
      | imagesPerPage | Integer | 100                   |
    And the reason should be "STATIC"

  Scenario Outline: A flag of another type, or a missing one, evaluates to the default with an error code
    Given a <type>-flag with key "<key>" and a default value "<default>"
    When the flag was evaluated with details
    Then the resolved details value should be "<default>"
    And the reason should be "ERROR"
    And the error-code should be "<code>"
    And no exception should have been thrown

    Examples:
      | key          | type    | default | code           |
      | string-flag  | Boolean | false   | TYPE_MISMATCH  |
      | string-flag  | Integer | 7       | TYPE_MISMATCH  |
      | boolean-flag | String  | other   | TYPE_MISMATCH  |
      | float-flag   | String  | other   | TYPE_MISMATCH  |
      | object-flag  | String  | other   | TYPE_MISMATCH  |
      | string-flag  | Object  | {}      | TYPE_MISMATCH  |
      | missing-flag | Boolean | true    | FLAG_NOT_FOUND |

  Scenario: A change fires an event and takes effect
    Given a String-flag with key "changing-flag" and a default value "other"
    And a change event handler
    When the flag was evaluated with details
    And the resolved value is remembered
    And the flag was modified
    Then the change event handler should have been executed
    And the flag should be part of the event payload
    When the flag was evaluated with details
    Then the resolved details value should have changed

  Scenario: Without the service the provider is stale and serves cached values
    Given a String-flag with key "string-flag" and a default value "other"
    And a ready event handler
    And a stale event handler
    When a ready event was fired
    And the flag was evaluated with details
    And the connection is lost
    Then the stale event handler should have been executed
    And the client should be in stale state
    When the flag was evaluated with details
    Then the resolved details value should be "hi"
    And the reason should be "STALE"
    When the connection is restored
    Then the ready event handler should have been executed
    And the client should be in ready state

  Scenario: A provider that cannot reach the service reports an error and returns defaults
    Given a unavailable provider
    And a error event handler
    And a Boolean-flag with key "boolean-flag" and a default value "false"
    Then the error event handler should have been executed within 10000ms
    And the client should be in error state
    When the flag was evaluated with details
    Then the resolved details value should be "false"
    And the reason should be "ERROR"
